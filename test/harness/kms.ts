/** Starts one simulated KMS for each test worker. Environment variables tell the tested code its address. */
import { useKeyService } from "#shared/secrets/key-service.ts";
import { startKms } from "../../infra/local/engines/kms.ts";
import { REGION } from "../../infra/local/servers/address.ts";
import { keyArn } from "../../infra/local/template/names.ts";

/** The simulated KMS checks no IAM policy, because the tests do not call it with the role of a function. */
export async function useTestKms(): Promise<void> {
  useKeyService();
  if (process.env.SECRETS_KEY_ARN !== undefined) return;
  const kms = await startKms(undefined);
  const arn = keyArn("TestKey");
  kms.serve([arn]);
  kms.unref();
  Object.assign(process.env, {
    SECRETS_KEY_ARN: arn,
    AWS_ENDPOINT_URL_KMS: kms.endpoint,
    AWS_REGION: process.env.AWS_REGION ?? REGION,
    AWS_ACCESS_KEY_ID: process.env.AWS_ACCESS_KEY_ID ?? "local",
    AWS_SECRET_ACCESS_KEY: process.env.AWS_SECRET_ACCESS_KEY ?? "local",
  });
}
