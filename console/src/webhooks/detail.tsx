/** The page for one webhook: its state and actions, its registrations, the log of its deliveries, and code that verifies a signature. */
import { useMutation } from "@tanstack/react-query";
import type { Webhook } from "canvassing-client/api";
import { useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { answer, api } from "../api/client.ts";
import { Button } from "../ui/button.tsx";
import { DeleteDialog } from "../ui/delete-dialog.tsx";
import { Field, Fields, Input, Select } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { Page, Panel } from "../ui/page.tsx";
import { SecretDialog } from "../ui/secret-dialog.tsx";
import { Answer } from "../ui/states.tsx";
import { localTime } from "../ui/text.ts";
import { DeliveryLog } from "./deliveries.tsx";
import { secretTexts } from "./new-webhook.tsx";
import {
  type EventName,
  isEventName,
  type Range,
  useDeleteWebhook,
  useEventTypes,
  usePause,
  useReplay,
  useTest,
  useWebhook,
} from "./queries.ts";
import { Registrations } from "./registrations.tsx";
import style from "./webhooks.module.css";

export function WebhookPage() {
  const { id = "" } = useParams<{ id: string }>();
  const query = useWebhook(Number(id));
  return (
    <Answer query={query} what="the webhook">
      {(webhook) => (
        <Page
          title={webhook.name}
          lead={
            <>
              <Link href="/webhooks">Webhooks</Link> · <code className="broken">{webhook.url}</code> ·{" "}
              {webhook.status === "active" ? "Active" : "Paused: events are kept until you resume"}
            </>
          }
          actions={<Actions webhook={webhook} />}
        >
          <DeliveryLog webhookId={webhook.id} />
          <Registrations webhook={webhook} />
          <SignatureHelp />
        </Page>
      )}
    </Answer>
  );
}

function Actions({ webhook: { id, name, status } }: { webhook: Webhook }) {
  const [dialog, setDialog] = useState<"replay" | "secret" | "delete">();
  const close = () => setDialog(undefined);
  const [, open] = useLocation();
  const types = useEventTypes().data ?? [];
  const [event, setEvent] = useState<EventName>("webhook.test");
  const test = useTest(id);
  const pause = usePause(id);
  const remove = useDeleteWebhook(id, () => open("/webhooks"));
  return (
    <>
      <span className={style.sample}>
        <Select
          aria-label="Event to test"
          value={event}
          options={types.length > 0 ? types.map((type) => [type.event, type.event]) : [[event, event]]}
          onChange={({ target }) => isEventName(target.value, types) && setEvent(target.value)}
        />
      </span>
      <Button kind="main" disabled={test.isPending} onClick={() => test.mutate(event)}>
        Send a test event
      </Button>
      <Button
        kind="quiet"
        disabled={pause.isPending}
        onClick={() => pause.mutate(status === "active" ? "pause" : "resume")}
      >
        {status === "active" ? "Pause" : "Resume"}
      </Button>
      <Button kind="quiet" onClick={() => setDialog("replay")}>
        Send again …
      </Button>
      <Button kind="quiet" onClick={() => setDialog("secret")}>
        New secret …
      </Button>
      <Button kind="danger" onClick={() => setDialog("delete")}>
        Delete
      </Button>
      {dialog === "replay" && <ReplayDialog webhookId={id} onClose={close} />}
      {dialog === "secret" && <RotateDialog webhookId={id} onClose={close} />}
      {dialog === "delete" && (
        <DeleteDialog what="webhook" name={name} request={remove} onClose={close}>
          Nothing more is sent to it, and what waits is cancelled.
        </DeleteDialog>
      )}
    </>
  );
}

function RotateDialog({ webhookId: id, onClose }: { webhookId: number; onClose: () => void }) {
  const rotate = useMutation({
    mutationFn: () => answer(api.POST("/api/webhooks/{id}/rotate-secret", { params: { path: { id } }, body: {} })),
  });
  return (
    <SecretDialog
      {...secretTexts}
      secretTitle="New secret"
      secret={rotate.data?.secretKey}
      onStored={onClose}
      title="New secret"
      submit="Make a new secret"
      request={rotate}
      onClose={onClose}
    >
      <p>For 24 hours, deliveries are signed with the old secret too, so that receivers can change in peace.</p>
    </SecretDialog>
  );
}

const examples = {
  TypeScript: `import { createHmac, timingSafeEqual } from "node:crypto";

function isGenuine(rawBody: Buffer, signature: string, secretKey: string): boolean {
  const expected = createHmac("sha256", secretKey).update(rawBody).digest();
  const received = Buffer.from(signature, "hex");
  return received.length === expected.length && timingSafeEqual(received, expected);
}`,
  Python: `import hashlib, hmac

def is_genuine(raw_body: bytes, signature: str, secret_key: str) -> bool:
    expected = hmac.new(secret_key.encode(), raw_body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, signature)`,
  Go: `func isGenuine(rawBody []byte, signature, secretKey string) bool {
	mac := hmac.New(sha256.New, []byte(secretKey))
	mac.Write(rawBody)
	received, err := hex.DecodeString(signature)
	return err == nil && hmac.Equal(received, mac.Sum(nil))
}`,
  Ruby: `require "openssl"

def genuine?(raw_body, signature, secret_key)
  expected = OpenSSL::HMAC.hexdigest("SHA256", secret_key, raw_body)
  OpenSSL.secure_compare(expected, signature)
end`,
} as const;

type Language = keyof typeof examples;
const languages = ["TypeScript", "Python", "Go", "Ruby"] as const satisfies readonly Language[];

function SignatureHelp() {
  const [language, setLanguage] = useState<Language>("TypeScript");
  return (
    <Panel title="Check the signature">
      <p>
        The header <code>X-Service-Signature</code> is the HMAC-SHA256 of the raw body with the secret, in hex. During a
        change of the secret, <code>X-Service-Signature-Previous</code> is the one of the old secret.
      </p>
      <div className="row">
        {languages.map((one) => (
          <Button key={one} aria-pressed={one === language} onClick={() => setLanguage(one)}>
            {one}
          </Button>
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls a long example */}
      <pre className={style.code} tabIndex={0}>
        {examples[language]}
      </pre>
    </Panel>
  );
}

const HOUR_MS = 3_600_000;

const hints = {
  undelivered: "Sends the deliveries that have failed in all attempts, and those that wait for another attempt.",
  all: "Also sends the deliveries that the receiver has already accepted.",
};

function ReplayDialog({ webhookId, onClose }: { webhookId: number; onClose: () => void }) {
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
      request={{ ...replay, mutate: () => replay.mutate(range) }}
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
