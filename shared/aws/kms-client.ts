/** What is needed of the key service's client: named, so that a bundle holds none of its other fifty commands. */
export { DecryptCommand, GenerateDataKeyCommand, KMSClient } from "@aws-sdk/client-kms";
