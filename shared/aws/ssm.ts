/** The client for Parameter Store of AWS Systems Manager, which contains the credentials of the scheduled smoke test. */
import { GetParameterCommand, PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

export interface Parameters {
  /** Returns the decrypted value. Throws if the parameter does not exist. */
  readonly read: (name: string) => Promise<string>;
  /** Encrypts the value with the account's own key for parameters, and stores it. */
  readonly write: (name: string, value: string) => Promise<void>;
}

export function openParameters(settings: ClientSettings = {}): Parameters {
  const ssm = new SSMClient(clientConfig(settings));
  return {
    async read(Name) {
      const { Parameter } = await ssm.send(new GetParameterCommand({ Name, WithDecryption: true }));
      return Parameter?.Value ?? "";
    },
    async write(Name, Value) {
      await ssm.send(new PutParameterCommand({ Name, Value, Type: "SecureString", Overwrite: true }));
    },
  };
}
