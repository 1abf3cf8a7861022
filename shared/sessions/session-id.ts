/** The id of a console session. It is random. The browser stores the id, and the table its hash. */
import { createHash, randomBytes } from "node:crypto";
import { KEY_PATTERN } from "#shared/auth/api-key.ts";
import { BEARER_PATTERN } from "#shared/auth/token.ts";

const ID_BYTES = 32;
/** 32 bytes in base64url. */
const ID = "[A-Za-z0-9_-]{43}";

/** CloudFront makes this Authorization header from the cookie (infra/edge/api-request.js), because authorizers read no other header. */
const SESSION_PATTERN = `^Session ${ID}$`;

/** The pattern of the Authorization header that API Gateway checks. Each alternative describes the whole header. */
export const AUTHORIZATION_PATTERN = `${BEARER_PATTERN}|${KEY_PATTERN}|${SESSION_PATTERN}`;

const header = new RegExp(SESSION_PATTERN);
const whole = new RegExp(`^${ID}$`);

export const newSessionId = (): string => randomBytes(ID_BYTES).toString("base64url");

export const isSessionId = (text: string): boolean => whole.test(text);

/** Returns the session id in an Authorization header. Undefined if the header has another form. */
export const sessionIdOf = (authorization: string): string | undefined =>
  header.test(authorization) ? authorization.slice("Session ".length) : undefined;

export const digestOf = (sessionId: string): string => createHash("sha256").update(sessionId).digest("base64url");
