/** Import the SDK of KMS only through this file, so that the bundles do not contain its other commands. */
export { DecryptCommand, GenerateDataKeyCommand, KMSClient } from "@aws-sdk/client-kms";
