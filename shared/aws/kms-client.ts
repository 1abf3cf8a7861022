/** The commands of the KMS client in use. Named exports keep its other fifty commands out of the bundles. */
export { DecryptCommand, GenerateDataKeyCommand, KMSClient } from "@aws-sdk/client-kms";
