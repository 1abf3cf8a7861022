/** A dialog that asks what to do with many prospects, shows how many would change, and then starts the job. */
import { useMutation, useQuery } from "@tanstack/react-query";
import type { BulkAction, Status, Tag } from "canvassing-client/api";
import { useState } from "react";
import { answer, api } from "../api/client.ts";
import { isAdmin, useMe, useStatuses, useTags, useUserOptions } from "../api/reference.ts";
import { watchJob } from "../jobs/watch.tsx";
import { Field, Input, Select } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { Answer } from "../ui/states.tsx";
import { amount } from "../ui/text.ts";
import type { PlacedFilter } from "./queries.ts";

export type Target = { readonly ids: readonly number[] } | { readonly filter: PlacedFilter };

interface BulkDialogProps {
  readonly target: Target;
  readonly onClose: () => void;
  readonly onStarted: () => void;
}

/**
 * Returns the fields of the request that select the prospects. The API requires at least one filter, or `all` if all prospects are meant.
 */
const bodyOf = (target: Target) => {
  if ("ids" in target) return { ids: [...target.ids] };
  return { filter: Object.keys(target.filter).length === 0 ? { all: true as const } : target.filter };
};

/** A change of more prospects than this begins only after the user has typed their number. */
const MANY = 500;

const kinds = ["assign", "status", "addTag", "removeTag", "delete"] as const;
type Kind = (typeof kinds)[number];
const labels: Readonly<Record<Kind, string>> = {
  assign: "Assign to",
  status: "Set the status",
  addTag: "Add a tag",
  removeTag: "Remove a tag",
  delete: "Delete",
};

/** The choice that means nobody, or no status. */
const NONE = "none";

/** Returns the change that the user has chosen. Returns undefined while a choice is missing. */
function actionOf(kind: Kind | undefined, value: string): BulkAction | undefined {
  if (kind === undefined || (kind !== "delete" && value === "")) return undefined;
  const id = value === NONE ? null : Number(value);
  if (kind === "assign") return { set: { assignedToUserId: id } };
  if (kind === "status") return { set: { currentStatusId: id } };
  if (kind === "delete") return { delete: true };
  return kind === "addTag" ? { addTagIds: [id ?? 0] } : { removeTagIds: [id ?? 0] };
}

/** Says what the button does, for example `Assign 2 prospects to Ann Rep`. */
function textOf(kind: Kind, count: number, chosen: string): string {
  const prospects = amount(count, "prospect");
  if (kind === "assign") return `Assign ${prospects} to ${chosen === NOBODY ? "nobody" : chosen}`;
  if (kind === "status") return `Set the status of ${prospects} to ${chosen}`;
  if (kind === "delete") return `Delete ${prospects}`;
  return kind === "addTag" ? `Add the tag ${chosen} to ${prospects}` : `Remove the tag ${chosen} from ${prospects}`;
}

export function BulkDialog({ target, onClose, onStarted }: BulkDialogProps) {
  const me = useMe().data;
  const [kind, setKind] = useState<Kind>();
  const [value, setValue] = useState("");
  const choices = useChoices(kind);
  const action = actionOf(kind, value);
  const query = useQuery({
    queryKey: ["prospects", "bulk-count", target, action],
    queryFn: () => (action === undefined ? 0 : countOf(target, action)),
    enabled: action !== undefined,
    staleTime: 0,
  });
  const [typed, setTyped] = useState("");
  const total = action === undefined ? undefined : query.data;
  const hasSome = total !== undefined && total > 0;
  const needsNumber = hasSome && (total > MANY || (kind === "assign" && value === NONE));
  // The number may be typed with separators, as the page shows it.
  const isConfirmed = !needsNumber || typed.replace(/[\s,.]/g, "") === String(total);
  const choose = (chosenKind: Kind | undefined, chosenValue: string): void => {
    setKind(chosenKind);
    setValue(chosenValue);
    setTyped("");
  };
  const start = useMutation({
    mutationFn: (body: { readonly action: BulkAction; readonly expectedCount: number }) =>
      answer(api.POST("/api/prospects/bulk", { body: { ...bodyOf(target), ...body } })),
    onSuccess: (job) => {
      if ("id" in job) watchJob(job.id);
      onStarted();
    },
  });
  const chosen = choices.find(([id]) => String(id) === value)?.[1] ?? "";
  return (
    <FormDialog
      title="Change many prospects"
      submit={kind === undefined || total === undefined ? "Start" : textOf(kind, total, chosen)}
      isAside
      danger={kind === "delete"}
      request={{
        ...start,
        mutate: () => {
          if (action !== undefined && total !== undefined) start.mutate({ action, expectedCount: total });
        },
      }}
      isReady={hasSome && isConfirmed}
      onClose={onClose}
    >
      <Field label="Change">
        <Select
          value={kind ?? ""}
          none="Choose"
          options={kinds
            .filter((one) => one !== "delete" || (me !== undefined && isAdmin(me)))
            .map((one) => [one, labels[one]])}
          onChange={(event) =>
            choose(
              kinds.find((one) => one === event.target.value),
              "",
            )
          }
        />
      </Field>
      {kind !== undefined && kind !== "delete" && (
        <Field label={kind === "assign" || kind === "status" ? "To" : "Tag"}>
          <Select
            value={value}
            none="Choose"
            options={choices}
            onChange={(event) => choose(kind, event.target.value)}
          />
        </Field>
      )}
      {action !== undefined && (
        <Answer query={query} what="the number of prospects">
          {(prospects) => (
            <p>
              This concerns <strong>{amount(prospects, "prospect")}</strong>. It can be undone afterwards.
            </p>
          )}
        </Answer>
      )}
      {needsNumber && (
        <Field label={`Type ${total} to confirm`}>
          <Input
            inputMode="numeric"
            autoComplete="off"
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        </Field>
      )}
    </FormDialog>
  );
}

async function countOf(target: Target, action: BulkAction): Promise<number> {
  const reply = await answer(api.POST("/api/prospects/bulk", { body: { ...bodyOf(target), action, dryRun: true } }));
  return "count" in reply ? reply.count : 0;
}

const NOBODY = "Nobody";

function useChoices(kind: Kind | undefined): readonly (readonly [id: number | typeof NONE, text: string])[] {
  const users = useUserOptions();
  const statuses = useStatuses().data ?? [];
  const tags = useTags().data ?? [];
  const textsOf = (all: readonly (Status | Tag)[]) => all.map(({ id, value }) => [id, value] as const);
  if (kind === "assign") return [[NONE, NOBODY], ...users];
  if (kind === "status") return [[NONE, "No status"], ...textsOf(statuses.filter(({ isActive }) => isActive))];
  return textsOf(tags);
}
