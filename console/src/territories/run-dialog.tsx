/** A dialog that assigns the prospects inside a territory. It first shows how many prospects would change, and then starts a job. */
import { useMutation, useQuery } from "@tanstack/react-query";
import type { NewRun, Territory } from "canvassing-client/api";
import { useState } from "react";
import { answer, api } from "../api/client.ts";
import { nameOf, useUsers } from "../api/reference.ts";
import { watchJob } from "../jobs/watch.tsx";
import { Field, Select } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import { Modal } from "../ui/modal.tsx";
import { Answer } from "../ui/states.tsx";
import { amount } from "../ui/text.ts";

const modes = ["assign", "unassign", "reassign"] as const;
type Mode = (typeof modes)[number];
const labels: Readonly<Record<Mode, string>> = {
  assign: "Assign all",
  unassign: "Assign to nobody",
  reassign: "Move from one rep to another",
};

export function RunDialog({ territory, onClose }: { territory: Territory; onClose: () => void }) {
  const { id, name, assignedToUserId } = territory;
  const [mode, setMode] = useState<Mode>("assign");
  const [to, setTo] = useState(assignedToUserId ?? undefined);
  const [from, setFrom] = useState<number>();
  const run: NewRun = {
    mode,
    ...(mode !== "unassign" && to !== undefined && { toUserId: to }),
    ...(mode === "reassign" && from !== undefined && { fromUserId: from }),
  };
  const isComplete = mode === "unassign" || (to !== undefined && (mode === "assign" || from !== undefined));
  const send = (body: NewRun) => answer(api.POST("/api/territories/{id}/runs", { params: { path: { id } }, body }));
  const count = useQuery({
    queryKey: ["prospects", "run-count", id, run],
    queryFn: async () => {
      const reply = await send({ ...run, dryRun: true });
      return "count" in reply ? reply.count : 0;
    },
    enabled: isComplete,
    staleTime: 0,
  });
  const start = useMutation({
    mutationFn: (expectedCount: number) => send({ ...run, expectedCount }),
    onSuccess: (job) => {
      if ("id" in job) watchJob(job.id);
      onClose();
    },
  });
  return (
    <Modal title={`Assign the prospects in ${name}`} onClose={onClose}>
      <Form
        submit={count.data === undefined ? "Start" : `${labels[mode]}: ${amount(count.data, "prospect")}`}
        isBusy={!isComplete || start.isPending || count.data === undefined || count.data === 0}
        error={start.error}
        onSubmit={() => count.data !== undefined && start.mutate(count.data)}
      >
        <Field label="Change">
          <Select
            value={mode}
            onChange={({ target }) => setMode(modes.find((one) => one === target.value) ?? "assign")}
          >
            {modes.map((one) => (
              <option key={one} value={one}>
                {labels[one]}
              </option>
            ))}
          </Select>
        </Field>
        {mode === "reassign" && <UserChoice label="From" value={from} onChange={setFrom} />}
        {mode !== "unassign" && <UserChoice label="To" value={to} onChange={setTo} />}
        {isComplete && (
          <Answer query={count} what="the number of prospects">
            {(prospects) => (
              <p>
                This concerns <strong>{amount(prospects, "prospect")}</strong>. It can be undone afterwards.
              </p>
            )}
          </Answer>
        )}
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
