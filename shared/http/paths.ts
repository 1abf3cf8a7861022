/** Schemas that many routes share: ids in a path, and the response to a DELETE. */
import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import { Id, named, PathId } from "#shared/schema.ts";

export const IdPath = z.object({ id: PathId });
export const RegistrationPath = z.object({ id: PathId, registrationId: PathId });
export const DeliveryPath = z.object({
  id: PathId,
  /** The form of the id is not checked, because any unknown id must lead to 404 and not to 400. */
  deliveryId: z.string(),
});

/* @__PURE__ */ explain([IdPath, RegistrationPath, DeliveryPath], () => ({
  fields: {
    id: { description: "Id of the record.", example: 1024 },
    registrationId: { description: "Id of the registration.", example: 2048 },
    deliveryId: { description: "Id of the delivery.", example: "dlv_0mb6x3k2a1f4c9d07b35e8a61c204" },
  },
}));

export const Deleted = named("Deleted", z.object({ id: Id }), "The deleted record.");
