/** A dialog that asks what to do with many prospects, shows how many would change, and then starts the job. */
import { useMutation, useQuery } from "@tanstack/react-query";
import type { BulkAction } from "canvassing-client/api";
import { useState } from "react";
import { answer, api } from "../api/client.ts";
import { isAdmin, nameOf, useMe, useStatuses, useTags, useUsers } from "../api/reference.ts";
import { watchJob } from "../jobs/watch.tsx";
import { Field, Select } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import { Modal } from "../ui/modal.tsx";
import { Answer } from "../ui/states.tsx";
import { amount } from "../ui/text.ts";
import style from "./bulk-bar.module.css";
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

const kinds = ["assign", "status", "addTag", "removeTag", "delete"] as const;
type Kind = (typeof kinds)[number];
const labels: Readonly<Record<Kind, string>> = {
  assign: "Assign to",
  status: "Set the status",
  addTag: "Add a tag",
  removeTag: "Remove a tag",
  delete: "Delete",
};

function actionOf(kind: Kind, value: string): BulkAction {
  const id = value === "" ? null : Number(value);
  if (kind === "assign") return { set: { assignedToUserId: id } };
  if (kind === "status") return { set: { currentStatusId: id } };
  if (kind === "delete") return { delete: true };
  return kind === "addTag" ? { addTagIds: [id ?? 0] } : { removeTagIds: [id ?? 0] };
}

export function BulkDialog({ target, onClose, onStarted }: BulkDialogProps) {
  const me = useMe().data;
  const [kind, setKind] = useState<Kind>("assign");
  const [value, setValue] = useState("");
  const choices = useChoices(kind);
  const action = actionOf(kind, value);
  const needsValue = (kind === "addTag" || kind === "removeTag") && value === "";
  const count = useQuery({
    queryKey: ["prospects", "bulk-count", target, action],
    queryFn: () => countOf(target, action),
    enabled: !needsValue,
    staleTime: 0,
  });
  const start = useMutation({
    mutationFn: (expectedCount: number) =>
      answer(api.POST("/api/prospects/bulk", { body: { ...bodyOf(target), action, expectedCount } })),
    onSuccess: (job) => {
      if ("id" in job) watchJob(job.id);
      onStarted();
    },
  });
  return (
    <Modal title="Change many prospects" onClose={onClose}>
      <Form
        submit={count.data === undefined ? "Start" : `${labels[kind]}: ${amount(count.data, "prospect")}`}
        danger={kind === "delete"}
        isBusy={start.isPending || count.data === undefined || count.data === 0 || needsValue}
        error={start.error}
        onSubmit={() => count.data !== undefined && start.mutate(count.data)}
      >
        <Field label="Change">
          <Select
            value={kind}
            onChange={({ target: { value: chosen } }) => {
              setKind(kinds.find((one) => one === chosen) ?? "assign");
              setValue("");
            }}
          >
            {kinds
              .filter((one) => one !== "delete" || (me !== undefined && isAdmin(me)))
              .map((one) => (
                <option key={one} value={one}>
                  {labels[one]}
                </option>
              ))}
          </Select>
        </Field>
        {kind !== "delete" && (
          <Field label="To">
            <Select value={value} onChange={(event) => setValue(event.target.value)}>
              {choices.map(([id, text]) => (
                <option key={id} value={id}>
                  {text}
                </option>
              ))}
            </Select>
          </Field>
        )}
        {needsValue ? (
          <p>Choose a tag.</p>
        ) : (
          <Answer query={count} what="the number of prospects">
            {(prospects) => (
              <p className={style.count}>
                This concerns <strong>{amount(prospects, "prospect")}</strong>. It can be undone afterwards.
              </p>
            )}
          </Answer>
        )}
      </Form>
    </Modal>
  );
}

async function countOf(target: Target, action: BulkAction): Promise<number> {
  const reply = await answer(api.POST("/api/prospects/bulk", { body: { ...bodyOf(target), action, dryRun: true } }));
  return "count" in reply ? reply.count : 0;
}

function useChoices(kind: Kind): readonly (readonly [id: number | "", text: string])[] {
  const users = useUsers().data ?? [];
  const statuses = useStatuses().data ?? [];
  const tags = useTags().data ?? [];
  if (kind === "assign") {
    return [
      ["", "Nobody"],
      ...users.filter(({ isActive }) => isActive).map((user) => [user.id, nameOf(user)] as const),
    ];
  }
  if (kind === "status") {
    return [
      ["", "No status"],
      ...statuses.filter(({ isActive }) => isActive).map(({ id, value }) => [id, value] as const),
    ];
  }
  return [["", "Choose"], ...tags.map(({ id, value }) => [id, value] as const)];
}
