/** Exports the parts of the KMS SDK that the service uses. Import the SDK only here, so that bundles do not contain its other commands. */
export { DecryptCommand, GenerateDataKeyCommand, KMSClient } from "@aws-sdk/client-kms";
