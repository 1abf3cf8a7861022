/** The settings that all AWS clients share: endpoint, time-outs, connections, retries and log. */
import { errorFields, log } from "#shared/log.ts";

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface ClientSettings {
  /** The URL of the AWS service. By default, the SDK reads it from AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_<SERVICE>. */
  readonly endpoint?: string | undefined;
  /** By default, the SDK reads the region from the environment variable AWS_REGION. */
  readonly region?: string | undefined;
  /** By default, the SDK finds the credentials itself. In a Lambda function, it uses the credentials of the function's role. */
  readonly credentials?: Credentials | (() => Promise<Credentials>) | undefined;
  readonly connectMs?: number;
  /** A request fails if no byte of the response arrives for this number of milliseconds. */
  readonly answerMs?: number;
  readonly attempts?: number;
}

/** The time-outs are short, so that an API function can still answer within 25 seconds when an AWS service hangs. */
const CONNECT_MS = 1_000;
const ANSWER_MS = 3_000;
/** Maximum number of attempts for one call of an AWS service. */
export const ATTEMPTS = 3;

/** Maximum number of connections of one client. They stay open between requests. */
const CONNECTIONS = 50;

interface FailedCall {
  readonly commandName: string;
  readonly error: unknown;
}

/**
 * Passes the messages of the SDK to the service's log. The class has no method `info`: if it existed, the SDK would copy each request and
 * each response for it. The type of the SDK requires the method, so the class only declares it.
 */
class SdkLog {
  declare readonly info: () => void;

  /** The SDK reports here by which rules it finds the endpoint. */
  debug(): void {
    // Nobody needs these messages.
  }

  warn(message: unknown): void {
    log.warn("aws sdk warning", { message: String(message) });
  }

  /**
   * The level is `debug`, because the caller handles or logs the error. Some errors are normal, for example a failed condition. The SDK
   * also passes the input of the call, which must not be logged.
   */
  error({ commandName, error }: FailedCall): void {
    log.debug("aws call failed", { command: commandName, ...errorFields(error) });
  }
}

const sdkLog = new SdkLog();

/**
 * Returns the configuration of a client. The retry mode is not `adaptive` for two reasons. After DynamoDB has throttled a single key, that
 * mode slows down all requests of the client. It also does not react to the unprocessed keys of a batch.
 */
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
