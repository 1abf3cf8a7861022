/** A link to a file in the bucket, which the API returns for imports and exports. It is a presigned URL, so it works without a token. */
import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import { named, Timestamp } from "#shared/schema.ts";

export const FileLink = named("FileLink", z.object({ url: z.url(), expiresAt: Timestamp }), "A link into the bucket.");

/* @__PURE__ */ explain([FileLink], () => ({
  fields: { url: "Contains its own signature: send no token with it.", expiresAt: "When the link expires." },
}));
