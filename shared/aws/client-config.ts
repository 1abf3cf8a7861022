/** The settings that all AWS clients share: endpoint, time limits, connections and retries. */

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface ClientSettings {
  /** By default the SDK chooses the endpoint. The SDK reads AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE>. */
  readonly endpoint?: string | undefined;
  /** The default is the value of AWS_REGION. */
  readonly region?: string | undefined;
  /** The default is the SDK's provider chain, which finds a Lambda function's credentials in the environment. */
  readonly credentials?: Credentials | (() => Promise<Credentials>) | undefined;
  readonly connectMs?: number;
  /** The longest time until the answer begins, and the longest pause within the answer. */
  readonly answerMs?: number;
  /** The number of attempts of one call, including the first. */
  readonly attempts?: number;
}

/** The limits are short, so that an API function answers within 25 seconds even if an AWS service hangs. */
const CONNECT_MS = 1_000;
const ANSWER_MS = 3_000;
const ATTEMPTS = 3;

/** The number of connections of one client. They stay open between calls. */
const CONNECTIONS = 50;

/**
 * The configuration of an SDK client. The retry mode is `standard`, because `adaptive` slows down every call of the client after one
 * throttled key, and does not see the keys that a batch leaves unprocessed.
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
