/** SSM parameters: the console client's secret, and the credentials of the scheduled smoke test. */
import { GetParameterCommand, PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

export interface Parameters {
  readonly read: (name: string) => Promise<string>;
  /** Stores the value, encrypted with the account's default key for parameters. */
  readonly write: (name: string, value: string) => Promise<void>;
}

export function openParameters(settings: ClientSettings = {}): Parameters {
  const ssm = new SSMClient(clientConfig(settings));
  return {
    async read(Name) {
      const { Parameter } = await ssm.send(new GetParameterCommand({ Name, WithDecryption: true }));
      const { Value } = Parameter ?? {};
      // An empty secret would cause an error later, whose message would not name the parameter.
      if (Value === undefined || Value === "") throw new Error(`the SSM parameter ${Name} has no value: store one`);
      return Value;
    },
    async write(Name, Value) {
      await ssm.send(new PutParameterCommand({ Name, Value, Type: "SecureString", Overwrite: true }));
    },
  };
}
