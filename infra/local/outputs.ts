/** What clients, tests and operators need to know of a running local service: the stack's outputs and the servers below it. */
import { eventFunctions } from "../routes/routes.ts";
import { nameOfArn, queueUrl } from "./names.ts";
import type { Stack } from "./stack.ts";

export interface Outputs {
  readonly ApiUrl: string;
  readonly TableName: string;
  readonly BucketName: string;
  readonly Issuer: string;
  readonly Audience: string;
  readonly DynamoDbEndpoint: string;
  readonly SqsEndpoint: string;
  readonly S3Endpoint: string;
  readonly KmsEndpoint: string;
  readonly DeliveryQueueUrl: string;
  readonly DeadLetterQueueUrls: readonly string[];
}

export interface Places {
  readonly apiUrl: string;
  readonly issuer: string;
  readonly audience: string;
  readonly dynamoDbEndpoint: string;
  readonly kmsEndpoint: string;
  readonly queues: { readonly endpoint: string };
}

export function describeStack(stack: Stack, places: Places): Outputs {
  const sqs = places.queues.endpoint;
  const consumed = new Set(stack.eventSources.map(({ EventSourceArn }) => EventSourceArn));
  const isConsumed = (name: string): boolean => [...consumed].some((arn) => arn.endsWith(`:${name}`));
  const unread = stack.queues.filter(({ name }) => !isConsumed(name));
  return {
    TableName: stack.tables[0]?.name ?? "",
    BucketName: stack.buckets[0]?.name ?? "",
    ...stack.outputs,
    ApiUrl: places.apiUrl,
    Issuer: places.issuer,
    Audience: places.audience,
    DynamoDbEndpoint: places.dynamoDbEndpoint,
    SqsEndpoint: sqs,
    S3Endpoint: sqs,
    KmsEndpoint: places.kmsEndpoint,
    DeliveryQueueUrl: queueUrl(sqs, queueReadBy(eventFunctions.deliver.file, stack)),
    // A queue that no function reads keeps what could not be worked off.
    DeadLetterQueueUrls: unread.map(({ name }) => queueUrl(sqs, name)),
  };
}

function queueReadBy(file: string, { functions, eventSources }: Stack): string {
  const name = functions.find((spec) => spec.file === file)?.name;
  return nameOfArn(eventSources.find(({ FunctionName }) => nameOfArn(FunctionName) === name)?.EventSourceArn ?? "");
}
