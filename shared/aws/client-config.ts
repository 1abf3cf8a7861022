/** The settings that all AWS clients share: endpoint, time-outs, connections, retries and log. */
import { sdkLog } from "#shared/aws/sdk-log.ts";

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
/** Number of attempts of a call. */
export const ATTEMPTS = 3;

/** Maximum number of connections of one client. They stay open between requests. */
const CONNECTIONS = 50;

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
