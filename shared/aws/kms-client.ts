/** The KMS client and the commands in use. A named export keeps the other fifty KMS commands out of the bundles. */
export { DecryptCommand, GenerateDataKeyCommand, KMSClient } from "@aws-sdk/client-kms";
