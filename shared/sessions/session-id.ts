/** The id of a console session. It is random, and only the browser knows it: the table contains its hash. */
import { createHash, randomBytes } from "node:crypto";
import { BEARER_PATTERN } from "#shared/auth/token.ts";

const ID_BYTES = 32;
/** Matches the base64url form of 32 bytes. */
const ID = "[A-Za-z0-9_-]{43}";

/**
 * Matches an Authorization header with the id of a session. Clients do not send it: CloudFront makes it from the cookie of the session
 * (infra/edge/api-request.js), because an authorizer of API Gateway reads only this header.
 */
const SESSION_PATTERN = `^Session ${ID}$`;

/** Matches every Authorization header that the authorizer accepts. Each alternative describes the whole header. */
export const AUTHORIZATION_PATTERN = `${BEARER_PATTERN}|${SESSION_PATTERN}`;

const header = new RegExp(SESSION_PATTERN);
const whole = new RegExp(`^${ID}$`);

export const newSessionId = (): string => randomBytes(ID_BYTES).toString("base64url");

export const isSessionId = (text: string): boolean => whole.test(text);

/** Returns the id of the session in an Authorization header. Returns undefined if the header has another form. */
export const sessionIdOf = (authorization: string): string | undefined =>
  header.test(authorization) ? authorization.slice("Session ".length) : undefined;

export const digestOf = (sessionId: string): string => createHash("sha256").update(sessionId).digest("base64url");
