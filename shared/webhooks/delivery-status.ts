/** How a delivery stands, as it is told: what waits for a registration that is gone is cancelled, whatever its row still says. */
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";

/**
 * The row says so when the next message of the delivery comes by, within a quarter of an hour; of what a paused webhook keeps,
 * when it is resumed. `isRegistered`: somebody still wants it. Ids of registrations do not come again.
 */
export const standingOf = ({ state }: Pick<StoredDelivery, "state">, isRegistered: boolean): StoredDelivery["state"] =>
  state === "waiting" && !isRegistered ? "cancelled" : state;
