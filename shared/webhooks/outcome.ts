/** What became of a batch of deliveries, told one by one: a fault with some of them is nobody else's. */
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";

/** By delivery. What is in neither has been dealt with. */
export interface Outcome {
  /** By a fault of our own: the message is to come back. */
  readonly failed: Map<string, unknown>;
  /** For now the webhook can take no more. */
  readonly turnedAway: Set<string>;
}

export const newOutcome = (): Outcome => ({ failed: new Map(), turnedAway: new Set() });

/** What is thrown is a fault with these deliveries alone. */
export async function guarded(
  { failed }: Outcome,
  deliveries: readonly Pick<StoredDelivery, "id">[],
  work: () => Promise<unknown>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    for (const { id } of deliveries) failed.set(id, error);
  }
}
