/**
 * The KMS client for data keys. It loads the SDK at its first request, so a function that has all its data keys in its cache never loads
 * the SDK.
 */
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/**
 * The encryption context of a data key: names and values that are not secret. KMS decrypts the key only if the context is the same as at
 * encryption. CloudTrail also logs the context.
 */
export type KeyContext = Readonly<Record<string, string>>;

export interface Kms {
  /** Creates a data key of 256 bits. `wrapped` is this key in encrypted form. Only the KMS key can decrypt it. */
  generateDataKey(context: KeyContext): Promise<{ readonly plain: Uint8Array; readonly wrapped: Uint8Array }>;
  unwrap(wrapped: Uint8Array, context: KeyContext): Promise<Uint8Array>;
}

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
