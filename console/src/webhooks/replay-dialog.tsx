/** A dialog that sends the deliveries of a time span again. */
import { useState } from "react";
import { Field, Fields, Input, Select } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { localTime } from "../ui/text.ts";
import { type Range, useReplay } from "./queries.ts";

const HOUR_MS = 3_600_000;

const hints = {
  undelivered: "Sends the deliveries that have failed in all attempts, and those that wait for another attempt.",
  all: "Also sends the deliveries that the receiver has already accepted.",
};

export function ReplayDialog({ webhookId, onClose }: { webhookId: number; onClose: () => void }) {
  const [range, setRange] = useState<Range>(() => ({
    from: localTime(Date.now() - 24 * HOUR_MS),
    // The field has no seconds. One minute is added, so that the current minute belongs to the span.
    to: localTime(Date.now() + 60_000),
    deliveries: "undelivered",
  }));
  const replay = useReplay(webhookId, onClose);
  return (
    <FormDialog
      title="Send deliveries again"
      submit="Send again"
      request={replay}
      onSubmit={() => replay.mutate(range)}
      onClose={onClose}
    >
      <Fields>
        {(["from", "to"] as const).map((end) => (
          <Field key={end} label={end === "from" ? "From" : "Until"} name={end}>
            <Input
              type="datetime-local"
              required
              value={range[end]}
              onChange={({ target }) => setRange({ ...range, [end]: target.value })}
            />
          </Field>
        ))}
      </Fields>
      <Field label="Which" name="deliveries" hint={hints[range.deliveries]}>
        <Select
          value={range.deliveries}
          options={[
            ["undelivered", "Those that were not delivered"],
            ["all", "All"],
          ]}
          onChange={({ target }) => setRange({ ...range, deliveries: target.value === "all" ? "all" : "undelivered" })}
        />
      </Field>
    </FormDialog>
  );
}
