/** The OpenAPI 3.1 document, made from the route table and the contracts: `npm run openapi` writes it, `--check` compares. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Contract } from "#shared/http/contract.ts";
import { Problem } from "#shared/http/problem.ts";
import { limits } from "#shared/limits.ts";
import { OPENAPI_FILE, root } from "../build/bundle.ts";
import type { Route } from "../routes/route.ts";
import { routes } from "../routes/routes.ts";
import { DocumentInfo, documentOperation, operation } from "./operation.ts";
import { headers, problemResponses } from "./problems.ts";
import { sections } from "./prose.ts";
import { type Components, collectComponents, type JsonSchema } from "./schemas.ts";

export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: Readonly<Record<string, unknown>>;
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>;
}

const introduction = `Prospects, territories and webhooks of canvassing teams. Every record belongs to the caller's company.

Send an access token of the service's OpenID Connect issuer as \`Authorization: Bearer\`. Times are UTC
\`YYYY-MM-DDTHH:mm:ss.sssZ\`, ids positive integers below 2^53. In JSON bodies nothing is coerced and unknown fields are
ignored. Every error is \`application/problem+json\` with a code of a closed list; every answer carries \`X-Request-Id\`.
A method that a path does not have is answered 405 with \`Allow\`. What is compared without case also makes no difference
between ß and SS, nor between letters that are composed and those that are not (Unicode NFC and NFD); texts are kept as they
were sent. \`/api\` is version 1: it only grows.`;

/** Imports every function of the route table; throws when one says nothing of itself. */
export async function openApiDocument(): Promise<OpenApiDocument> {
  const components = collectComponents();
  components.schema(Problem, "output");
  const operations = await Promise.all(routes.map(async (route) => ({ route, handler: await handlerOf(route) })));
  const paths: Record<string, Record<string, unknown>> = {};
  const tags = new Set<string>();
  for (const { route, handler } of operations) {
    const described = describe(route, handler, components);
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: described.operation };
    tags.add(described.tag);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Canvassing", version: "1", description: introduction, "x-webhook-url-policy": "public" },
    servers: [{ url: "/" }],
    security: [{ accessToken: [] }],
    tags: [...tags].map((name) => ({ name, description: sections[name] ?? "" })),
    paths,
    components: {
      securitySchemes: { accessToken: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
      parameters: { "Idempotency-Key": idempotencyKey },
      headers,
      responses: problemResponses(),
      schemas: components.all(),
    },
  };
}

function describe(route: Route, handler: object, components: Components): { operation: unknown; tag: string } {
  if (hasContract(handler)) {
    return { operation: operation(route, handler.contract, components), tag: handler.contract.tag };
  }
  if ("document" in handler) {
    const info = DocumentInfo.parse(handler.document);
    return { operation: documentOperation(route, info), tag: info.tag };
  }
  throw new Error(`functions/${route.file}.ts: its handler has neither contract nor document`);
}

/** Handlers come from `endpoint()`, which sets a contract and nothing else under this name. */
const hasContract = (handler: object): handler is { contract: Contract } => "contract" in handler;

async function handlerOf({ file }: Route): Promise<object> {
  const address = pathToFileURL(join(root, "functions", `${file}.ts`)).href;
  const module: unknown = await import(address);
  if (typeof module !== "object" || module === null || !("handler" in module) || typeof module.handler !== "function") {
    throw new Error(`functions/${file}.ts exports no handler`);
  }
  return module.handler;
}

const idempotencyKey = {
  name: "Idempotency-Key",
  in: "header",
  description:
    "Makes the request safe to repeat: one effect, and the first answer again with `Idempotency-Replayed: true`, for 24 h per caller and route. The same key with another request is 422, with one that is still running 409.",
  schema: { type: "string", minLength: 1, maxLength: limits.idempotencyKey },
  example: "7b9a3c1e-0d52-4f4e-9a55-2f7f1c1f0b6d",
} as const;

export const asText = (document: OpenApiDocument): string => `${JSON.stringify(document, null, 2)}\n`;

/** Places where two JSON values differ, each as one line. */
export function differences(committed: unknown, generated: unknown, place = ""): string[] {
  if (isObject(committed) && isObject(generated)) {
    const names = new Set([...Object.keys(committed), ...Object.keys(generated)]);
    return [...names].flatMap((name) => differences(committed[name], generated[name], `${place}/${name}`));
  }
  if (JSON.stringify(committed) === JSON.stringify(generated)) return [];
  return [`${place}: ${excerpt(committed)} -> ${excerpt(generated)}`];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

const excerpt = (value: unknown): string => (value === undefined ? "(absent)" : JSON.stringify(value).slice(0, 120));

if (import.meta.main) {
  const document = await openApiDocument();
  if (process.argv.includes("--check")) check(document);
  else {
    mkdirSync(dirname(OPENAPI_FILE), { recursive: true });
    writeFileSync(OPENAPI_FILE, asText(document));
  }
}

function check(document: OpenApiDocument): void {
  const committed = readFileSync(OPENAPI_FILE, "utf8");
  if (committed === asText(document)) return;
  const lines = differences(JSON.parse(committed), JSON.parse(asText(document)));
  console.error(`docs/openapi.json is stale; run \`npm run openapi\`. Committed -> generated:`);
  for (const line of lines.slice(0, 40)) console.error(`  ${line}`);
  if (lines.length > 40) console.error(`  and ${lines.length - 40} more`);
  process.exitCode = 1;
}
