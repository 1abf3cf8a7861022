/** The settings that all AWS clients share. */
import { errorFields, log } from "#shared/log.ts";

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface ClientSettings {
  /** The default is AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_<SERVICE>. */
  readonly endpoint?: string | undefined;
  /** The default is AWS_REGION. */
  readonly region?: string | undefined;
  /** The default is what the SDK finds, for example the credentials of the function's role. */
  readonly credentials?: Credentials | (() => Promise<Credentials>) | undefined;
  readonly connectMs?: number;
  /** A request fails if no byte arrives for this time. */
  readonly answerMs?: number;
  readonly attempts?: number;
}

/** The time-outs are short: an API function must answer within 25 seconds even if an AWS service does not respond. */
const CONNECT_MS = 1_000;
const ANSWER_MS = 3_000;
export const ATTEMPTS = 3;

/** Maximum number of connections of one client. A connection stays open between requests. */
const CONNECTIONS = 50;

/** Passes messages of the SDK to the log. `info` is only declared: if it existed, the SDK would copy each request and response for it. */
class SdkLog {
  declare readonly info: () => void;

  debug(): void {}

  warn(message: unknown): void {
    log.warn("aws sdk warning", { message: String(message) });
  }

  /** The level is `debug`, because the caller handles or logs the error. The input of the call must not be logged. */
  error({ commandName, error }: { readonly commandName: string; readonly error: unknown }): void {
    log.debug("aws call failed", { command: commandName, ...errorFields(error) });
  }
}

const sdkLog = new SdkLog();

/** The retry mode `adaptive` would slow down all requests after one throttled partition, and would ignore unprocessed items of a batch. */
export function clientConfig(settings: ClientSettings = {}) {
  const { endpoint, region, credentials, connectMs = CONNECT_MS, answerMs = ANSWER_MS, attempts = ATTEMPTS } = settings;
  const agent = { keepAlive: true, maxSockets: CONNECTIONS };
  return {
    maxAttempts: attempts,
    retryMode: "standard",
    logger: sdkLog,
    requestHandler: {
      connectionTimeout: connectMs,
      requestTimeout: answerMs,
      throwOnRequestTimeout: true,
      socketTimeout: answerMs,
      httpAgent: agent,
      httpsAgent: agent,
      logger: sdkLog,
    },
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
    ...(credentials !== undefined && { credentials }),
  };
}
