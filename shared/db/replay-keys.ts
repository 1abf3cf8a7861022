/** Keys of replays: the one of a webhook, and the deliveries that it goes through. */
import type { Key } from "#shared/db/keys.ts";

export const replayKeys = {
  /** The replay of a webhook's deliveries that is under way, or was the last. */
  replay: (companyId: number, webhookId: number): Key => ({ pk: `C#${companyId}#D#${webhookId}#REPLAY`, sk: "REPLAY" }),
  /** Whose replay stands under this key? */
  replayAt: ({ pk }: Key): { companyId: number; webhookId: number } | undefined => {
    const [, companyId, webhookId] = /^C#(\d+)#D#(\d+)#REPLAY$/.exec(pk) ?? [];
    return companyId === undefined ? undefined : { companyId: Number(companyId), webhookId: Number(webhookId) };
  },
  /** Of a partition of deliveries: those whose ids begin with `first` to `last`, or that come after one with all its attempts. */
  between: (after: string | undefined, first: string, last: string) => ({
    from: after === undefined ? `D#${first}` : `D#${after}#~`,
    upTo: `D#${last}~`,
  }),
} as const;
