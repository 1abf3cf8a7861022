/** Shapes that many routes share: the id in a path and the answer to a delete. */
import * as z from "zod/mini";
import { Id, named, PathId } from "#shared/schema.ts";

export const IdPath = z.object({ id: PathId });
export const RegistrationPath = z.object({ id: PathId, registrationId: PathId });
export const DeliveryPath = z.object({
  id: PathId /** Opaque: any other form names no delivery, which is a 404. */,
  deliveryId: z.string(),
});

export const Deleted = named("Deleted", z.object({ id: Id }), "What was deleted.");
