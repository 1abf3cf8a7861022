/** The KMS client and those of its commands that the service uses. Named exports keep the other commands out of the bundles. */
export { DecryptCommand, GenerateDataKeyCommand, KMSClient } from "@aws-sdk/client-kms";
