/** The dialogs that create, rotate, revoke and take over a key. A new key is shown once. */
import type { ApiKey, ServiceAccount } from "canvassing-client/api";
import { useState } from "react";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { useDraft } from "../drafts/draft.tsx";
import { Button } from "../ui/button.tsx";
import { Checks, Field, Input, Select } from "../ui/field.tsx";
import { notifyDone } from "../ui/notices.tsx";
import { SecretDialog } from "../ui/secret-dialog.tsx";
import { localTime } from "../ui/text.ts";
import { DAY_MS, stale } from "./keys.ts";
import { scopeTexts } from "./scopes.ts";

const MOST_DAYS = limits.keyMsMax / DAY_MS;
const keyTexts = { secretTitle: "The new key", what: "key", use: "A program sends it as its Bearer token." } as const;

/** Returns the last of `days` days, of which today is the first, as the value of an input of the type `date`. */
const lastOf = (days: number): string => localTime(Date.now() + (days - 1) * DAY_MS).slice(0, 10);

export function NewKeyDialog({ account: { id, name }, onClose }: { account: ServiceAccount; onClose: () => void }) {
  const draft = useDraft(
    { record: `key-of:${id}`, title: `New key of ${name}`, path: `/service-accounts/${id}` },
    {
      name: ["", limits.name],
      scopes: ["prospects:read", 2 * limits.name],
      lastDay: [lastOf(limits.keyMs / DAY_MS), limits.name],
    },
  );
  const lastDay = draft.text("lastDay");
  const chosen = draft.text("scopes").split(",");
  const scopes = scopeTexts.map(([scope]) => scope).filter((scope) => chosen.includes(scope));
  const create = useChange({
    run: () => {
      // The end depends only on the day. If the user repeats the request after a lost answer, it is equal and creates no second key.
      const expiresAt = new Date(`${lastDay}T23:59:59`).toISOString();
      const body = { name: draft.text("name"), scopes, expiresAt };
      return answer(api.POST("/api/service-accounts/{id}/keys", { params: { path: { id } }, body }));
    },
    stale,
    onDone: () => draft.discard(),
  });
  return (
    <SecretDialog
      {...keyTexts}
      secret={create.data?.key}
      onStored={onClose}
      title="New key"
      submit="Create the key"
      request={create}
      isReady={scopes.length > 0}
      draft={draft}
      onClose={onClose}
    >
      <Field label="Name" name="name" hint="Where the key is used.">
        <Input required {...draft.control("name")} />
      </Field>
      <Checks
        label="What the key may do"
        options={scopeTexts}
        chosen={scopes}
        onChange={(now) => draft.change("scopes", now.join())}
      />
      <small className="muted">
        Changing does not include reading. Reading prospects includes statuses, tags, addresses and users. A key may do
        only what the role of its account and your own role permit too.
      </small>
      <Field label="Last day" name="expiresAt">
        <Input type="date" required min={lastOf(1)} max={lastOf(MOST_DAYS)} {...draft.control("lastDay")} />
      </Field>
      <div className="row">
        {[30, 90, 180, MOST_DAYS].map((days) => (
          <Button
            key={days}
            aria-pressed={lastDay === lastOf(days)}
            onClick={() => draft.change("lastDay", lastOf(days))}
          >
            {days} days
          </Button>
        ))}
      </div>
    </SecretDialog>
  );
}

const overlaps = [
  [0, "It stops within a minute"],
  [3_600, "For 1 hour"],
  [86_400, "For 1 day"],
  [limits.keyOverlapSeconds, "For 7 days"],
] as const;

/** For each action, the text that says what it does, and the text of its button. */
const actions = {
  Rotate: ["The new key may do the same, and works for as long as this one did when it was new.", "Make a new key"],
  Revoke: [
    "A program that uses the key stops working within a minute, and the key cannot be brought back.",
    "Revoke it",
  ],
  "Take over": ["You answer for the key from now on. It may do at most what you may do.", "Take it over"],
} as const;
export type Action = keyof typeof actions;

interface ActionProps {
  readonly accountId: number;
  readonly apiKey: ApiKey;
  readonly action: Action;
  readonly onClose: () => void;
}

export function ActionDialog({ accountId, apiKey: { id: keyId, name }, action, onClose }: ActionProps) {
  const [overlapSeconds, setOverlap] = useState(86_400);
  const [text, submit] = actions[action];
  const path = { params: { path: { id: accountId, keyId } } };
  const change = useChange<{ readonly id: string; readonly key?: string }>({
    run: () => {
      if (action === "Revoke") return answer(api.DELETE("/api/service-accounts/{id}/keys/{keyId}", path));
      if (action === "Take over") return answer(api.POST("/api/service-accounts/{id}/keys/{keyId}/take-over", path));
      const body = { overlapSeconds };
      return answer(api.POST("/api/service-accounts/{id}/keys/{keyId}/rotate", { ...path, body }));
    },
    stale,
    onDone: ({ key }) => {
      if (key !== undefined) return;
      notifyDone(action === "Revoke" ? "The key is revoked." : "You answer for the key now.");
      onClose();
    },
  });
  return (
    <SecretDialog
      {...keyTexts}
      secret={change.data?.key}
      onStored={onClose}
      title={`${action} ${name}`}
      submit={submit}
      danger={action === "Revoke"}
      request={change}
      onClose={onClose}
    >
      <p>{text}</p>
      {action === "Rotate" && (
        <Field label="The old key still works" name="overlapSeconds">
          <Select
            value={overlapSeconds}
            options={overlaps}
            onChange={({ target }) => setOverlap(Number(target.value))}
          />
        </Field>
      )}
    </SecretDialog>
  );
}
