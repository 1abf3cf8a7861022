/**
 * The KMS client and the KMS commands that the service uses. Import them only through this file, so that the bundles do not contain the
 * other commands.
 */
export { DecryptCommand, GenerateDataKeyCommand, KMSClient } from "@aws-sdk/client-kms";
