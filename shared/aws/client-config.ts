/** The settings that every AWS client shares: where it calls, its time limits, its connections and its retries. */

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface ClientSettings {
  /** Default: the SDK's choice. It honours AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE>. */
  readonly endpoint?: string | undefined;
  /** Default: AWS_REGION. */
  readonly region?: string | undefined;
  /** Default: the SDK's provider chain. A Lambda function has its credentials in the environment. */
  readonly credentials?: Credentials | (() => Promise<Credentials>) | undefined;
  readonly connectMs?: number;
  /** Limits the time until the answer begins, and each pause in the answer. */
  readonly answerMs?: number;
  /** Attempts of one call, the first included. */
  readonly attempts?: number;
}

/** Short limits, so that an API function answers within 25 seconds even if a service hangs. */
const CONNECT_MS = 1_000;
const ANSWER_MS = 3_000;
const ATTEMPTS = 3;

/** Connections of one client, kept alive between calls. */
const CONNECTIONS = 50;

/**
 * The configuration of an SDK client. The retry mode is `standard`, not `adaptive`: `adaptive` slows down every call of the client
 * after one throttled key, and does not see the keys that a batch leaves unprocessed.
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
