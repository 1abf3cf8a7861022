/** The field mode: a map of doors over the whole screen, and a sheet for the door at which the rep is. It works without a connection. */
import { useQuery } from "@tanstack/react-query";
import type { Status } from "canvassing-client/api";
import { useEffect, useMemo, useRef, useState } from "react";
import { Link, useSearch } from "wouter";
import { navigate } from "wouter/use-browser-location";
import { answer, api } from "../api/client.ts";
import { NOTE } from "../api/notes.ts";
import { useConfig, useMe } from "../api/reference.ts";
import { useDrafts } from "../drafts/draft.tsx";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Modal } from "../ui/modal.tsx";
import { dismiss, notifyDone, notifyFailed, notifyUndo } from "../ui/notices.tsx";
import { Answer } from "../ui/states.tsx";
import { numberText } from "../ui/text.ts";
import type { Position } from "./distance.ts";
import { type Door, targetOf, titleOf } from "./door.ts";
import { DoorView, recordOf } from "./door-view.tsx";
import { EditDoor, NewDoor } from "./edit.tsx";
import style from "./field.module.css";
import { Find } from "./find.tsx";
import { FieldMap } from "./map.tsx";
import { existingPhone, MOST_DOORS, openPhone, type Phone, PhoneContext, tooMany, useCopy, usePhone } from "./phone.ts";
import { usePosition } from "./position.ts";
import { type Height, Sheet } from "./sheet.tsx";
import { type Direction, directionOf, nearest, nextStop } from "./street.ts";
import { DoorList, Today } from "./today.tsx";
import { Waiting } from "./waiting.tsx";

export function FieldPage() {
  const me = useMe().data;
  const issuer = useConfig().data?.issuer;
  const id = me?.user.id;
  const phone = useQuery({
    queryKey: ["phone", issuer, id],
    queryFn: () => openDoors(issuer ?? "", id ?? 0),
    enabled: issuer !== undefined && id !== undefined,
    staleTime: "static",
    gcTime: Number.POSITIVE_INFINITY,
    networkMode: "always",
  });
  return (
    <Answer query={phone} what="the doors on this device">
      {(opened) => (
        <PhoneContext value={opened}>
          <Field />
        </PhoneContext>
      )}
    </Answer>
  );
}

async function openDoors(issuer: string, user: number): Promise<Phone> {
  const kept = await existingPhone(issuer, user);
  if (kept !== undefined) return kept;
  const { total } = await answer(api.GET("/api/prospects", { params: { query: { pageSize: 1 } } }));
  if (total <= MOST_DOORS) return openPhone(issuer, user);
  throw new Error(tooMany(numberText(total)));
}

/** A status that contains one of these words means that nobody may knock. Its text is searched, because no field of it says this. */
const DO_NOT = /\b(do not|don't|dnk|no soliciting)\b/i;

type Dialog =
  | { readonly kind: "today" | "find" | "edit" }
  | { readonly kind: "choose"; readonly doors: readonly Door[] }
  | { readonly kind: "new"; readonly position: Position };

function Field() {
  const phone = usePhone();
  const copy = useCopy();
  const { store: drafts } = useDrafts();
  const [walk] = useState(phone.walk);
  const [key, setKey] = useState(walk.door);
  const [direction, setDirection] = useState<Direction>(1);
  const [height, setHeight] = useState<Height>("peek");
  const [dialog, setDialog] = useState<Dialog>();
  const [isLocated, setLocated] = useState(false);
  const [isFollowing, setFollowing] = useState(false);
  const notice = useRef(0);
  const visited = useRef(new Set(walk.visited));
  const me = usePosition(isLocated, () => {
    setLocated(false);
    setFollowing(false);
  });
  const { list: doors, doors: byKey, statuses, tags } = copy;
  const isOpen = ({ key: other, status }: Door): boolean =>
    !visited.current.has(other) && !DO_NOT.test(status?.value ?? "");
  // A sync may change the order of the doors. The sheet must then not show another door, under a finger that is about to press a status.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the first doors and the first position choose a door
  const first = useMemo(() => nearest(doors, me?.position)?.stop.key, [doors.length === 0, me === undefined]);
  const door = byKey.get(key ?? first ?? "") ?? nearest(doors, me?.position)?.stop;
  const linked = new URLSearchParams(useSearch()).get("door");
  useEffect(() => {
    if (linked === null) return;
    setKey(linked);
    navigate("/field", { replace: true });
  }, [linked]);
  useEffect(() => phone.keepWalk({ door: door?.key, visited: [...visited.current] }), [phone, door?.key]);

  const open = (next: Door): void => {
    setDialog(undefined);
    setDirection(directionOf(door?.place, next.place, direction));
    setKey(next.key);
  };
  /** Opens the next door of the walk. If the user has meanwhile opened another door than `from`, that door stays open. */
  const goOn = (from: Door): void => {
    visited.current.add(from.key);
    const step = nextStop(doors, from, direction, isOpen);
    if (step === undefined) {
      // The next press of “Next door” begins a new walk over all doors.
      visited.current.clear();
      notifyDone("You have been at all doors.");
      return;
    }
    setDirection(step.direction);
    setKey((now) => (now === undefined || now === from.key ? step.stop.key : now));
  };
  const setStatus = async (at: Door, status: Status): Promise<void> => {
    const change = (currentStatusId: number | null) =>
      phone.act({ type: "prospect.update", ...targetOf(at), fields: { currentStatusId } });
    const before = at.status?.id ?? null;
    const undo = async (): Promise<void> => {
      setKey(at.key);
      // Another tab, or somebody else, may have changed the status meanwhile, so load it first.
      if (navigator.onLine) await phone.sync();
      const now = phone.copy().doors.get(at.key)?.status;
      if (now?.id === status.id) await change(before);
      else notifyDone(`${titleOf(at)} is ${now?.value ?? "without a status"} meanwhile, so nothing was undone.`);
    };
    // Remove the message of the earlier door. A user would take its undo button for the undo of this door's change.
    dismiss(notice.current);
    // A user who sees the next door takes the change for safe. The next door therefore appears only when this device has stored the change.
    if (before === status.id) notifyDone(`${status.value}: ${titleOf(at)}. It had this status before.`);
    else {
      await change(status.id);
      notice.current = notifyUndo(`${status.value}: ${titleOf(at)}.`, () => void undo().catch(notifyFailed));
    }
    // A rep who has begun a note at this door stays there.
    const hasDraft = drafts.all().some((draft) => draft.record === recordOf(at) && draft.field === NOTE);
    if (!hasDraft) goOn(at);
    else visited.current.add(at.key);
  };
  const addNote = (at: Door, body: string): void => {
    const stored = phone.act({ type: "note.create", ...targetOf(at), fields: { body } });
    stored.then(
      () => notifyDone("The note is added."),
      (error: Error) => {
        const draft = {
          record: recordOf(at),
          field: NOTE,
          text: body,
          title: `Note for ${titleOf(at)}`,
          path: "/field",
        };
        drafts.save({ ...draft, file: undefined }, Number.POSITIVE_INFINITY);
        notifyFailed(error);
      },
    );
  };
  return (
    <div className={style.page}>
      <h1 className="visually-hidden">Field mode</h1>
      <FieldMap
        doors={doors}
        selected={door}
        me={me}
        isFollowing={isFollowing}
        onMove={() => setFollowing(false)}
        onDoors={(found) => {
          const [only, ...others] = found;
          if (only !== undefined && others.length === 0) open(only);
          else setDialog({ kind: "choose", doors: found });
        }}
        onLongPress={({ lng, lat }) => setDialog({ kind: "new", position: [lng, lat] })}
      />
      <div className={style.tools}>
        <Waiting />
        <Button onClick={() => setDialog({ kind: "today" })}>Today</Button>
        <Button aria-label="Find a door" onClick={() => setDialog({ kind: "find" })}>
          <Icon name="search" />
        </Button>
      </div>
      <div className={style.locate}>
        <Button
          aria-pressed={isFollowing}
          aria-label="My position"
          onClick={() => {
            setLocated(true);
            setFollowing(!isFollowing);
          }}
        >
          <Icon name="locate" />
        </Button>
      </div>
      <Sheet key={door?.key} label="Door" height={height} onHeight={setHeight}>
        {door === undefined ? (
          <NoDoors isLoading={copy.lastContactMs === undefined} />
        ) : (
          <DoorView
            door={door}
            statuses={statuses}
            tags={tags}
            me={me?.position}
            onStatus={(status) => setStatus(door, status).catch(notifyFailed)}
            onNote={(body) => addNote(door, body)}
            onNext={() => goOn(door)}
            onEdit={() => setDialog({ kind: "edit" })}
          />
        )}
      </Sheet>
      {dialog?.kind === "today" && (
        <Today doors={doors} from={me?.position ?? door?.position} onOpen={open} onClose={() => setDialog(undefined)} />
      )}
      {dialog?.kind === "find" && (
        <Find doors={doors} from={me?.position ?? door?.position} onOpen={open} onClose={() => setDialog(undefined)} />
      )}
      {dialog?.kind === "edit" && door !== undefined && (
        <EditDoor door={door} tags={tags} onClose={() => setDialog(undefined)} />
      )}
      {dialog?.kind === "new" && (
        <NewDoor pressed={dialog.position} doors={doors} onClose={() => setDialog(undefined)} onMade={setKey} />
      )}
      {dialog?.kind === "choose" && (
        <Modal title="Which door?" onClose={() => setDialog(undefined)}>
          <div className="inside">
            <DoorList doors={dialog.doors} onOpen={open} />
          </div>
        </Modal>
      )}
    </div>
  );
}

function NoDoors({ isLoading }: { isLoading: boolean }) {
  return isLoading ? (
    <p>Your doors are being downloaded. Keep the page open.</p>
  ) : (
    <p>
      No door is assigned to you. Press and hold the map to add one, or see <Link href="/prospects">all prospects</Link>
      .
    </p>
  );
}
