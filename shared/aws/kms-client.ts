/**
 * The KMS client and the KMS commands that the service uses. Importing them through this file keeps the other commands out of the
 * bundles.
 */
export { DecryptCommand, GenerateDataKeyCommand, KMSClient } from "@aws-sdk/client-kms";
