/** A dialog that assigns the prospects inside a territory. It first shows how many prospects would change, and then starts a job. */
import { useMutation, useQuery } from "@tanstack/react-query";
import type { NewRun, Territory } from "canvassing-client/api";
import { useState } from "react";
import { answer, api } from "../api/client.ts";
import { nameOf, useUsers } from "../api/reference.ts";
import { watchJob } from "../jobs/watch.tsx";
import { useCount } from "../ui/confirm.tsx";
import { Field, Select } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import { Modal } from "../ui/modal.tsx";
import { amount } from "../ui/text.ts";

/** Says what the button does, for example `Assign 2 prospects to Ann Rep`. */
function textOf(mode: Mode, count: number, names: { readonly from: string; readonly to: string }): string {
  const prospects = amount(count, "prospect");
  if (mode === "unassign") return `Assign ${prospects} to nobody`;
  return mode === "assign"
    ? `Assign ${prospects} to ${names.to}`
    : `Move ${prospects} from ${names.from} to ${names.to}`;
}

const modes = ["assign", "unassign", "reassign"] as const;
type Mode = (typeof modes)[number];
const labels: Readonly<Record<Mode, string>> = {
  assign: "Assign all",
  unassign: "Assign to nobody",
  reassign: "Move from one rep to another",
};

export function RunDialog({ territory, onClose }: { territory: Territory; onClose: () => void }) {
  const { id, name, assignedToUserId } = territory;
  const [mode, setMode] = useState<Mode>();
  const [to, setTo] = useState(assignedToUserId ?? undefined);
  const [from, setFrom] = useState<number>();
  const users = useUsers().data ?? [];
  const run: Omit<NewRun, "mode"> = {
    ...(mode !== "unassign" && to !== undefined && { toUserId: to }),
    ...(mode === "reassign" && from !== undefined && { fromUserId: from }),
  };
  const isComplete =
    mode === "unassign" || (mode !== undefined && to !== undefined && (mode === "assign" || from !== undefined));
  const send = (body: NewRun) => answer(api.POST("/api/territories/{id}/runs", { params: { path: { id } }, body }));
  const query = useQuery({
    queryKey: ["prospects", "run-count", id, mode, run],
    queryFn: async () => {
      if (mode === undefined) return 0;
      const reply = await send({ mode, ...run, dryRun: true });
      return "count" in reply ? reply.count : 0;
    },
    enabled: isComplete,
    staleTime: 0,
  });
  const count = useCount(isComplete ? { mode, ...run } : undefined, query, mode === "unassign");
  const start = useMutation({
    mutationFn: (body: { readonly mode: Mode; readonly expectedCount: number }) => send({ ...run, ...body }),
    onSuccess: (job) => {
      if ("id" in job) watchJob(job.id);
      onClose();
    },
  });
  const { total } = count;
  const nameIn = (user: number | undefined): string => {
    const found = users.find((one) => one.id === user);
    return found === undefined ? "" : nameOf(found);
  };
  return (
    <Modal title={`Assign the prospects in ${name}`} onClose={onClose}>
      <Form
        submit={
          mode === undefined || total === undefined
            ? "Start"
            : textOf(mode, total, { from: nameIn(from), to: nameIn(to) })
        }
        isBusy={start.isPending || !count.isReady}
        error={start.error}
        onSubmit={() => {
          if (mode !== undefined && total !== undefined) start.mutate({ mode, expectedCount: total });
        }}
      >
        <Field label="Change">
          <Select value={mode ?? ""} onChange={({ target }) => setMode(modes.find((one) => one === target.value))}>
            <option value="">Choose</option>
            {modes.map((one) => (
              <option key={one} value={one}>
                {labels[one]}
              </option>
            ))}
          </Select>
        </Field>
        {mode === "reassign" && <UserChoice label="From" value={from} onChange={setFrom} />}
        {mode !== undefined && mode !== "unassign" && <UserChoice label="To" value={to} onChange={setTo} />}
        {count.shown}
      </Form>
    </Modal>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: number | undefined;
  readonly onChange: (id: number | undefined) => void;
}

function UserChoice({ label, value, onChange }: ChoiceProps) {
  const users = useUsers().data ?? [];
  return (
    <Field label={label}>
      <Select
        value={value ?? ""}
        onChange={({ target }) => onChange(target.value === "" ? undefined : Number(target.value))}
      >
        <option value="">Choose</option>
        {users
          .filter(({ isActive, id }) => isActive || id === value)
          .map((user) => (
            <option key={user.id} value={user.id}>
              {nameOf(user)}
            </option>
          ))}
      </Select>
    </Field>
  );
}
