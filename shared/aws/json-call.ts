/**
 * Calls of AWS services in their JSON protocol: signed, each with an end, and tried again after faults that pass. A client of the SDK
 * takes three times as long for a call, and most of a bundle (docs/decisions/2026-11-22-calls-without-the-sdk.md).
 */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { exchange, type Reply, type TimeLimits } from "#shared/aws/exchange.ts";
import { hostOf, regionInUse, type SignerSettings, signerOf } from "#shared/aws/signing.ts";

export interface CallSettings extends SignerSettings, Partial<TimeLimits> {
  /** Default: what AWS_ENDPOINT_URL… says, else the service's own in the region. */
  readonly endpoint?: string | undefined;
  /** Of one call, the first one included. */
  readonly tries?: number;
}

/** Gives the answer as it was parsed from JSON. Throws AwsError. */
export type AwsCall = (operation: string, input: object) => Promise<unknown>;

/** What the service answered instead, or that it did not. */
export class AwsError extends Error {
  /** As the service names its fault; `NoAnswer` where there was no whole answer: the call may have taken effect. */
  override readonly name: string;
  /** Another try may well succeed. */
  readonly isPassing: boolean;
  /** The body of the answer. */
  readonly answer: unknown;

  constructor(
    name: string,
    message: string,
    isPassing: boolean,
    { answer, cause }: { answer?: unknown; cause?: unknown },
  ) {
    super(message, { cause });
    this.name = name;
    this.isPassing = isPassing;
    this.answer = answer;
  }
}

const services = {
  dynamodb: { signed: "dynamodb", target: "DynamoDB_20120810", endpoint: "AWS_ENDPOINT_URL_DYNAMODB" },
  "streams.dynamodb": {
    signed: "dynamodb",
    target: "DynamoDBStreams_20120810",
    endpoint: "AWS_ENDPOINT_URL_DYNAMODB_STREAMS",
  },
  sqs: { signed: "sqs", target: "AmazonSQS", endpoint: "AWS_ENDPOINT_URL_SQS" },
  "cognito-idp": {
    signed: "cognito-idp",
    target: "AWSCognitoIdentityProviderService",
    endpoint: "AWS_ENDPOINT_URL_COGNITO_IDENTITY_PROVIDER",
  },
} as const;

const TRIES = 3;
const CONNECT_MS = 1_000;
const ANSWER_MS = 3_000;

/** Nothing is read of the environment, or connected, before the first call. */
export function awsCall(service: keyof typeof services, settings: CallSettings = {}): AwsCall {
  const { tries = TRIES, connectMs = CONNECT_MS, answerMs = ANSWER_MS } = settings;
  let made: ReturnType<typeof sender> | undefined;
  return async (operation, input) => {
    made ??= sender(service, settings, { connectMs, answerMs });
    const body = JSON.stringify(input);
    for (let attempt = 1; ; attempt++) {
      try {
        return await made(operation, body);
      } catch (error) {
        if (attempt >= tries || !(error instanceof AwsError && error.isPassing)) throw error;
        await sleep(Math.random() * FIRST_PAUSE_MS * 2 ** attempt);
      }
    }
  };
}

/** Full jitter: up to 50 ms before the second try, doubled before each further one. */
const FIRST_PAUSE_MS = 25;

function sender(service: keyof typeof services, settings: CallSettings, limits: TimeLimits) {
  const { signed, target, endpoint: variable } = services[service];
  const { region = regionInUse() } = settings;
  // A variable that is empty is none.
  const endpoint = settings.endpoint ?? (process.env[variable] || process.env.AWS_ENDPOINT_URL);
  const url = new URL(endpoint || `https://${hostOf(service, region)}`);
  const signer = signerOf(signed, settings);
  const { protocol, hostname, host, port, pathname: path } = url;
  const address = { method: "POST", protocol, hostname, path, query: {}, ...(port !== "" && { port: Number(port) }) };
  const contentType = `application/x-amz-json-${service === "cognito-idp" ? "1.1" : "1.0"}`;
  return async (operation: string, body: string): Promise<unknown> => {
    const plain = { host, "content-type": contentType, "x-amz-target": `${target}.${operation}` };
    const { headers } = await signer.sign({ ...address, headers: plain, body });
    const length = String(Buffer.byteLength(body));
    const reply = await exchange(url, { ...headers, "content-length": length }, body, limits).catch(
      (cause: unknown) => {
        const why = cause instanceof Error ? cause.message : String(cause);
        throw new AwsError("NoAnswer", `${operation} at ${url.origin}: ${why}`, true, { cause });
      },
    );
    // SQS answers some calls with nothing at all.
    return answerOf(operation, service === "sqs" && reply.body === "" ? { ...reply, body: "{}" } : reply);
  };
}

const Fault = z.object({
  /** With a namespace before `#`. */
  __type: z._default(z.string(), "Unknown"),
  message: z.nullish(z.string()),
  Message: z.nullish(z.string()),
});

const passing =
  /Throttl|TooManyRequests|LimitExceeded|ProvisionedThroughputExceeded|TransactionInProgress|RequestTimeout/;

function answerOf(operation: string, { status, body }: Reply): unknown {
  const answer = parsed(body);
  if (status < 300 && answer !== undefined) return answer;
  const { data } = z.safeParse(Fault, answer);
  const name = data?.__type.split("#").at(-1) ?? `Status${status}`;
  const isPassing = status >= 500 || status === 429 || status < 300 || passing.test(name);
  throw new AwsError(name, `${operation}: ${data?.message ?? data?.Message ?? `status ${status}`}`, isPassing, {
    answer,
  });
}

/** Undefined: no JSON. */
function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
