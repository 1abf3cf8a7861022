/**
 * Signs the user out, and deletes the copy of the user's data on this device. If the device has drafts, or changes that the service does
 * not have, a dialog first asks what to do with them.
 */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { Link } from "wouter";
import { signOut } from "../api/client.ts";
import { addNote, noteTarget } from "../api/notes.ts";
import { forgetUser, useConfig, useMe } from "../api/reference.ts";
import { useDrafts } from "../drafts/draft.tsx";
import { existingPhone, type Phone, wipePhone } from "../field/phone.ts";
import { Button } from "../ui/button.tsx";
import { Modal } from "../ui/modal.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { amount } from "../ui/text.ts";

/** Maximum number of characters of a draft that the list shows. */
const SHOWN = 200;

export function SignOut({ onClose }: { onClose: () => void }) {
  const issuer = useConfig().data?.issuer ?? "";
  const user = useMe().data?.user.id ?? 0;
  const { all: drafts } = useDrafts();
  const phone = useQuery({
    queryKey: ["leaving", issuer, user],
    queryFn: async () => (await existingPhone(issuer, user)) ?? null,
    networkMode: "always",
    gcTime: 0,
  });
  const opened = phone.data;
  useEffect(() => () => opened?.close(), [opened]);
  const leave = async (): Promise<void> => {
    await signOut(async () => {
      forgetUser();
      await wipePhone(issuer, user);
    });
  };
  const copy = useSyncExternalStore(opened?.subscribe ?? subscribeToNothing, () => opened?.copy());
  const waiting = copy?.outbox.filter(({ state }) => state !== "applied").length ?? 0;
  const isAsking = drafts.length + waiting > 0;
  const isReady = phone.isSuccess && !isAsking;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect signs out once, when the dialog has nothing to ask
  useEffect(() => {
    if (isReady) leave().catch(notifyFailed).finally(onClose);
  }, [isReady]);
  if (!phone.isSuccess || !isAsking) return null;
  if (phone.data !== null && waiting > 0) {
    return <WaitingChanges phone={phone.data} waiting={waiting} onLeave={leave} onClose={onClose} />;
  }
  return <DraftsLeft onLeave={leave} onClose={onClose} />;
}

const subscribeToNothing = () => () => undefined;

async function sendAll(phone: Phone): Promise<void> {
  await phone.sync();
  const { outcome } = phone.copy();
  if (outcome instanceof Error) throw outcome;
  if (outcome === "offline") throw new Error("The service did not answer. The changes are still on this device.");
  if (outcome === "signed-out") throw new Error("Your session has ended. Sign in again to send the changes.");
}

interface ChangesProps {
  readonly phone: Phone;
  readonly waiting: number;
  readonly onLeave: () => Promise<void>;
  readonly onClose: () => void;
}

function WaitingChanges({ phone, waiting, onLeave, onClose }: ChangesProps) {
  const send = useMutation({ mutationFn: () => sendAll(phone), networkMode: "always" });
  const leave = useMutation({ mutationFn: onLeave, networkMode: "always" });
  const error = leave.error ?? send.error;
  return (
    <Modal title={`${amount(waiting, "change has", "changes have")} not been sent`} onClose={onClose}>
      <div className="stack inside">
        <p>The service does not have what you have changed in the field mode. If you sign out now, it is lost.</p>
        <div className="row end">
          <Button kind="danger" disabled={leave.isPending} onClick={() => leave.mutate()}>
            Give up {amount(waiting, "change")} and sign out
          </Button>
          <Button kind="main" disabled={send.isPending} onClick={() => send.mutate()}>
            Send first
          </Button>
        </div>
        {/* Above the buttons, the message would move "Give up" to where the user has pressed "Send first". */}
        {error !== null && <p role="alert">{error.message}</p>}
      </div>
    </Modal>
  );
}

function DraftsLeft({ onLeave, onClose }: Pick<ChangesProps, "onLeave" | "onClose">) {
  const { store, all } = useDrafts();
  const leave = useMutation({
    mutationFn: async (answer: "send" | "keep" | "discard") => {
      if (answer === "discard") store.clear();
      for (const draft of answer === "send" ? all : []) {
        const id = noteTarget(draft);
        if (id === undefined) continue;
        if (draft.text.trim() !== "") await addNote(id, draft.text.trim());
        store.drop(draft.record, [draft.field]);
      }
      await store.written();
      await onLeave();
    },
  });
  const others = all.filter((draft) => noteTarget(draft) === undefined).length;
  return (
    <Modal title={`You have ${amount(all.length, "draft")}`} onClose={onClose}>
      <div className="stack inside">
        <ul className="stack list scrolls">
          {all.map(({ record, field, title, path, text }) => (
            <li key={`${record} ${field}`}>
              <Link href={path} onClick={onClose}>
                {title}
              </Link>
              <p className="typed">{text.slice(0, SHOWN)}</p>
            </li>
          ))}
        </ul>
        <p>
          If you keep drafts, this browser shows them when you sign in again within 30 days. Other users do not see
          them.
          {others > 0 && others < all.length && " If you send the notes, the other drafts are kept."}
        </p>
        <div className="row end">
          <Button kind="danger" disabled={leave.isPending} onClick={() => leave.mutate("discard")}>
            Discard the drafts
          </Button>
          <Button disabled={leave.isPending} onClick={() => leave.mutate("keep")}>
            Keep the drafts for me
          </Button>
          {others < all.length && (
            <Button kind="main" disabled={leave.isPending} onClick={() => leave.mutate("send")}>
              Send the notes
            </Button>
          )}
        </div>
        {leave.error !== null && <p role="alert">{leave.error.message}</p>}
      </div>
    </Modal>
  );
}
