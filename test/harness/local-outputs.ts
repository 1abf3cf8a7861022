/** Reads the outputs of a local service: the names of the resources in its stack, and the addresses of its servers. */
import * as z from "zod/mini";

const Outputs = z.looseObject({
  TableName: z.string(),
  BucketName: z.string(),
  DynamoDbEndpoint: z.string(),
  S3Endpoint: z.string(),
  SecretsKeyArn: z.string(),
  KmsEndpoint: z.string(),
  SqsEndpoint: z.string(),
  ParkedRecordsUrl: z.string(),
  DeliveriesUrl: z.string(),
  DeliveriesDeadLettersUrl: z.string(),
});

export const outputsOf = async (url: string): Promise<z.infer<typeof Outputs>> =>
  Outputs.parse(await (await fetch(`${url}/local/outputs`)).json());
