/** Delivery ids: the same each time for the same event and registration, and in the order of time. */
import { createHash } from "node:crypto";

/** The instant in base 36 (9 digits reach past the year 5000) and 80 bits of a digest. */
export function deliveryId(eventId: string, registrationId: number, createdAt: string): string {
  const digest = createHash("sha256").update(`${registrationId}:${eventId}`).digest("hex").slice(0, 20);
  return `${idsSince(createdAt)}${digest}`;
}

/** What the ids of an instant begin with: those of later ones sort after it, those of earlier ones before. */
export const idsSince = (createdAt: string): string =>
  `dlv_${Math.max(0, Date.parse(createdAt)).toString(36).padStart(9, "0")}`;
