/** The KMS client for data keys. It loads the SDK when it first calls KMS, because most invocations find their data key in the cache. */
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/** The encryption context of KMS. KMS decrypts a data key only with the same context. CloudTrail logs the context: use no secrets. */
export type KeyContext = Readonly<Record<string, string>>;

export interface Kms {
  /** A data key of 256 bits. `wrapped` is its encrypted form. */
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
