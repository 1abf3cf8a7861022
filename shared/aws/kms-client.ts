/**
 * Exports only the parts of the KMS SDK that the service uses. Import the SDK only through this file, so that the bundles do not contain
 * the other commands.
 */
export { DecryptCommand, GenerateDataKeyCommand, KMSClient } from "@aws-sdk/client-kms";
