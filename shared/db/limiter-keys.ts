/** Keys of the gates that deliveries go through. */
import type { Key } from "#shared/db/keys.ts";

export const gateKeys = {
  /** How many deliveries of a webhook are in flight, and is its receiver called at all? */
  gate: (companyId: number, webhookId: number): Key => ({ pk: `C#${companyId}#D#${webhookId}#G`, sk: "GATE" }),
  /** Which webhook's gate stands under this key? */
  gateAt: ({ pk }: Key): { companyId: number; id: number } | undefined => {
    const [, companyId, id] = /^C#(\d+)#D#(\d+)#G$/.exec(pk) ?? [];
    return companyId === undefined ? undefined : { companyId: Number(companyId), id: Number(id) };
  },
} as const;
