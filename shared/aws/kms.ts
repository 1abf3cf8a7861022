/** The key service, by the SDK's client. It is loaded with the first call: a function that has its data keys at hand never pays for it. */
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/** What a data key is for. The service asks for the same words before it unwraps the key, and writes them into its audit trail. */
export type KeyContext = Readonly<Record<string, string>>;

export interface Kms {
  /** A new data key of 256 bits, as it is and as only the service can read it. */
  generateDataKey(context: KeyContext): Promise<{ readonly plain: Uint8Array; readonly wrapped: Uint8Array }>;
  unwrap(wrapped: Uint8Array, context: KeyContext): Promise<Uint8Array>;
}

/** `KeyId` is the key's ARN. */
export function openKms(KeyId: string, settings: ClientSettings = {}): Kms {
  let loaded: ReturnType<typeof load> | undefined;
  const load = async () => {
    const sdk = await import("#shared/aws/kms-client.ts");
    return { sdk, client: new sdk.KMSClient(clientConfig(settings)) };
  };
  const opened = () => {
    loaded ??= load();
    return loaded;
  };
  return {
    async generateDataKey(context) {
      const { sdk, client } = await opened();
      const command = new sdk.GenerateDataKeyCommand({ KeyId, KeySpec: "AES_256", EncryptionContext: context });
      const { Plaintext, CiphertextBlob } = await client.send(command);
      if (Plaintext === undefined || CiphertextBlob === undefined) throw new Error("the key service gave no data key");
      return { plain: Plaintext, wrapped: CiphertextBlob };
    },
    async unwrap(CiphertextBlob, context) {
      const { sdk, client } = await opened();
      const command = new sdk.DecryptCommand({ KeyId, CiphertextBlob, EncryptionContext: context });
      const { Plaintext } = await client.send(command);
      if (Plaintext === undefined) throw new Error("the key service gave no data key");
      return Plaintext;
    },
  };
}
