/**
 * Reads the OpenAPI definition of the REST API as API Gateway imports it. What API Gateway would refuse is refused, and so is
 * what the local gateway cannot honour.
 */
import * as z from "zod/mini";
import {
  ANY,
  Definition,
  type GatewayResponse,
  type Integration,
  type Mock,
  type Operation,
  type PathItem,
  type SecurityScheme,
  verbs,
} from "./api-schema.ts";
import { LocalError } from "./error.ts";
import { faults } from "./faults.ts";

export type MockIntegration = z.infer<typeof Mock>;

export interface ApiMethod {
  /** For errors: `GET /api/users/{id}`. */
  readonly name: string;
  readonly path: string;
  /** In capitals; `ANY` is for all that the path has no other method for. */
  readonly verb: string;
  readonly integration: z.infer<typeof Integration>;
  /** Name of the authorizer that it needs. */
  readonly authorizer: string | undefined;
}

export interface ApiAuthorizer {
  /** The header that holds the token. */
  readonly header: string;
  readonly uri: string;
  /** For the whole header. */
  readonly validation: string | undefined;
  readonly ttlSeconds: number;
}

export interface Api {
  readonly methods: readonly ApiMethod[];
  readonly authorizers: ReadonlyMap<string, ApiAuthorizer>;
  /** By response type. */
  readonly gatewayResponses: Readonly<Record<string, z.infer<typeof GatewayResponse>>>;
  readonly binaryMediaTypes: readonly string[];
  /** Answers of so many bytes are compressed; undefined compresses none. */
  readonly minimumCompressionSize: number | undefined;
}

/** @param id logical id of the API, for errors. Throws a LocalError that names each fault. */
export function readDefinition(id: string, body: unknown): Api {
  const parsed = z.safeParse(Definition, body);
  if (!parsed.success) throw new LocalError(faults(`${id}.Body`, parsed.error));
  const { paths, components, ...rest } = parsed.data;
  const methods = Object.entries(paths).flatMap(([path, item]) => methodsOf(path, item));
  const schemes = Object.entries(components.securitySchemes);
  const known = new Set(schemes.map(([name]) => name));
  const wrong = [...methods.flatMap((imported) => importFaults(imported, known)), ...siblingFaults(Object.keys(paths))];
  if (wrong.length > 0) throw new LocalError(wrong.map((fault) => `${id}.Body.paths.${fault}`).join("\n"));
  return {
    methods: methods.map(({ path, verb, operation }) => ({
      name: `${verb} ${path}`,
      path,
      verb,
      integration: operation["x-amazon-apigateway-integration"],
      authorizer: authorizerOf(operation),
    })),
    authorizers: new Map(schemes.map(([name, scheme]) => [name, apiAuthorizer(scheme)])),
    gatewayResponses: rest["x-amazon-apigateway-gateway-responses"],
    binaryMediaTypes: rest["x-amazon-apigateway-binary-media-types"],
    minimumCompressionSize: rest["x-amazon-apigateway-minimum-compression-size"],
  };
}

function apiAuthorizer({ name, ...scheme }: z.infer<typeof SecurityScheme>): ApiAuthorizer {
  const { authorizerUri, identityValidationExpression, authorizerResultTtlInSeconds } =
    scheme["x-amazon-apigateway-authorizer"];
  return {
    header: name.toLowerCase(),
    uri: authorizerUri,
    validation: identityValidationExpression,
    ttlSeconds: authorizerResultTtlInSeconds,
  };
}

const authorizerOf = ({ security: [needed] }: Imported["operation"]): string | undefined =>
  Object.keys(needed ?? {})[0];

interface Imported {
  readonly path: string;
  readonly verb: string;
  readonly operation: z.infer<typeof Operation>;
}

function methodsOf(path: string, item: z.infer<typeof PathItem>): Imported[] {
  return verbs.flatMap((key) => {
    const operation = item[key];
    return operation === undefined ? [] : [{ path, verb: key === ANY ? "ANY" : key.toUpperCase(), operation }];
  });
}

const PATH_PART = /^(?:[\w.:-]+|\{[\w.-]+\+?\})$/;

function importFaults({ path, verb, operation }: Imported, schemes: ReadonlySet<string>): string[] {
  const at = `${path}.${verb}`;
  const parts = path.split("/").slice(1);
  const named = parts.flatMap((part) => /^\{([^+}]+)\+?\}$/.exec(part)?.[1] ?? []);
  const declared = new Set(operation.parameters.map(({ name }) => name));
  const authorizer = authorizerOf(operation);
  return [
    ...(path.startsWith("/") && (path === "/" || parts.every((part) => PATH_PART.test(part)))
      ? []
      : [`${at}: a part of the path has characters that API Gateway does not take`]),
    ...named.filter((name) => !declared.has(name)).map((name) => `${at}: the path's parameter ${name} is not declared`),
    ...(authorizer === undefined || schemes.has(authorizer)
      ? []
      : [`${at}: no security scheme is named ${authorizer}`]),
    ...responseFaults(operation).map((fault) => `${at}: ${fault}`),
  ];
}

/** An integration maps into responses and headers that its operation declares. */
function responseFaults({
  responses,
  "x-amazon-apigateway-integration": integration,
}: Imported["operation"]): string[] {
  if (integration.type !== "mock") return [];
  return Object.values(integration.responses).flatMap(({ statusCode, responseParameters }) => {
    const response = responses[statusCode];
    if (response === undefined) return [`the response ${statusCode} is not declared`];
    const headers = new Set(Object.keys(response.headers).map((name) => `method.response.header.${name}`));
    const unknown = Object.keys(responseParameters).filter((name) => !headers.has(name));
    return unknown.map((name) => `${name} of the response ${statusCode} is not declared`);
  });
}

/** One place of a path has one name for its parameter. */
function siblingFaults(paths: readonly string[]): string[] {
  const names = new Map<string, string>();
  return paths.flatMap((path) => {
    const parts = path.split("/").slice(1);
    return parts.flatMap((part, i) => {
      if (!part.startsWith("{")) return [];
      const place = parts.slice(0, i).join("/");
      const known = names.get(place) ?? part;
      names.set(place, known);
      return known === part ? [] : [`${path}: ${known} is the parameter of this place already`];
    });
  });
}
