/** GET /openapi.json: returns the OpenAPI 3.1 document of this deployment. */
import { documentAnswer, openApiDocument } from "#shared/http/document.ts";

export const handler = Object.assign(openApiDocument(new URL("openapi.json", import.meta.url)), {
  document: { ...documentAnswer, summary: "This document" },
});
