/** The KMS client and the commands in use. Named exports keep the other fifty commands out of the bundles. */
export { DecryptCommand, GenerateDataKeyCommand, KMSClient } from "@aws-sdk/client-kms";
