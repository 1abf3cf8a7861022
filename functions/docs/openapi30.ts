/** GET /openapi-3.0.json: returns the OpenAPI document in version 3.0, for code generators that cannot read 3.1. */
import { documentAnswer, openApiDocument } from "#shared/http/document.ts";

export const handler = Object.assign(openApiDocument(new URL("openapi-3.0.json", import.meta.url)), {
  document: {
    ...documentAnswer,
    summary: "This document in OpenAPI 3.0",
    description: "The same API, for code generators that cannot read OpenAPI 3.1.",
  },
});
