/** The settings that all AWS clients share: endpoint, timeouts, connections and retries. */

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface ClientSettings {
  /** The address of the service. By default the SDK reads it from AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_<SERVICE>. */
  readonly endpoint?: string | undefined;
  /** By default the SDK reads the environment variable AWS_REGION. */
  readonly region?: string | undefined;
  /** By default the SDK finds the credentials itself, in a Lambda function those of the function's role. */
  readonly credentials?: Credentials | (() => Promise<Credentials>) | undefined;
  readonly connectMs?: number;
  /** Timeout, in milliseconds, for the start of an answer and for each pause within it. */
  readonly answerMs?: number;
  readonly attempts?: number;
}

/** Short timeouts, so that an API function answers within 25 seconds even if an AWS service hangs. */
const CONNECT_MS = 1_000;
const ANSWER_MS = 3_000;
const ATTEMPTS = 3;

/** Number of connections of one client, which stay open between calls. */
const CONNECTIONS = 50;

/**
 * The retry mode is not `adaptive`, because `adaptive` slows down all calls of a client after DynamoDB has throttled one key. `adaptive`
 * also does not react to the unprocessed keys of a batch.
 */
export function clientConfig(settings: ClientSettings = {}) {
  const { endpoint, region, credentials, connectMs = CONNECT_MS, answerMs = ANSWER_MS, attempts = ATTEMPTS } = settings;
  const agent = { keepAlive: true, maxSockets: CONNECTIONS };
  return {
    maxAttempts: attempts,
    retryMode: "standard",
    requestHandler: {
      connectionTimeout: connectMs,
      requestTimeout: answerMs,
      throwOnRequestTimeout: true,
      socketTimeout: answerMs,
      httpAgent: agent,
      httpsAgent: agent,
    },
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
    ...(credentials !== undefined && { credentials }),
  };
}
