/** The rules by which an AWS service refuses a request of CloudFormation to create, change or delete a resource. */
import { at, type Fields, listed } from "../../infra/template.ts";
import {
  type Account,
  differences,
  find,
  type Made,
  nameOfArn,
  notifiedQueues,
  REGION,
  referenceTo,
  ServiceError,
} from "./account.ts";

interface Rules {
  /**
   * Throws if AWS would refuse these settings.
   *
   * @param made the resource whose settings change, or undefined if the resource does not exist yet
   */
  readonly create?: (account: Account, properties: Fields, made?: Made) => void;
  readonly remove?: (account: Account, made: Made) => void;
}

function required(account: Account, type: string, id: unknown, use: string): Made {
  const found = find(account, type, String(id));
  if (found === undefined) throw new ServiceError(`${use}: ${type} ${String(id)} does not exist`);
  return found;
}

const of = (account: Account, type: string): Made[] => account.resources.filter((made) => made.type === type);

const mappingsOf = (account: Account, test: (properties: Fields) => boolean): Made[] =>
  of(account, "AWS::ApiGateway::BasePathMapping").filter(({ properties }) => test(properties));

const signInDomains = (account: Account, test: (properties: Fields) => boolean): Made[] =>
  of(account, "AWS::Cognito::UserPoolDomain").filter(({ properties }) => test(properties));

/**
 * Minimum number of concurrent executions without a reservation. Lambda refuses a reservation that would leave fewer of them in the
 * account.
 */
const UNRESERVED = 100;

/**
 * Maximum size of all inline policies of a role together, in characters. IAM does not count white space:
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
 */
const INLINE_POLICIES_SIZE = 10_240;

export const serviceRules: Readonly<Record<string, Rules>> = {
  "AWS::IAM::Role": {
    create(_, { Policies }) {
      const documents = listed(Policies).map((policy) => JSON.stringify(at(policy, "PolicyDocument")));
      const size = documents.join("").replaceAll(/\s/g, "").length;
      if (size > INLINE_POLICIES_SIZE) {
        throw new ServiceError(
          `Maximum policy size of ${INLINE_POLICIES_SIZE} bytes exceeded: the policies have ${size}`,
        );
      }
    },
  },
  "AWS::Lambda::Function": {
    create(account, { Code, Role, LoggingConfig, MemorySize = 128, ReservedConcurrentExecutions = 0 }, made) {
      if (Number(MemorySize) > account.functionMemoryMb) {
        throw new ServiceError(
          `'MemorySize' value failed to satisfy constraint: Member must have value less than or equal to ${account.functionMemoryMb}`,
        );
      }
      const { S3Bucket, S3Key } = { S3Bucket: at(Code, "S3Bucket"), S3Key: at(Code, "S3Key") };
      if (!account.objects.get(String(S3Bucket))?.has(String(S3Key))) {
        throw new ServiceError(`Error occurred while GetObject. S3 Error Code: NoSuchKey: ${String(S3Key)}`);
      }
      required(account, "AWS::IAM::Role", nameOfArn(Role), "The role of the function cannot be assumed");
      const logGroup = at(LoggingConfig, "LogGroup");
      if (logGroup !== undefined) required(account, "AWS::Logs::LogGroup", logGroup, "LoggingConfig");
      const others = of(account, "AWS::Lambda::Function").filter((other) => other !== made);
      const reserved = others.reduce(
        (sum, { properties }) => sum + Number(properties.ReservedConcurrentExecutions ?? 0),
        Number(ReservedConcurrentExecutions),
      );
      if (Number(ReservedConcurrentExecutions) > 0 && reserved + UNRESERVED > account.concurrency) {
        throw new ServiceError(
          "Specified ReservedConcurrentExecutions decreases account's UnreservedConcurrentExecution below its minimum value of [100].",
        );
      }
    },
  },
  "AWS::Lambda::Alias": {
    // While an alias moves to another version, it has weights for both versions. Lambda gives it such weights even without CodeDeploy if
    // the alias has provisioned concurrency: https://github.com/hashicorp/terraform-provider-aws/pull/48116
    create(_, properties, made) {
      const changed = made === undefined ? [] : differences(made.properties, properties);
      if (!changed.includes("FunctionVersion") || !changed.includes("ProvisionedConcurrencyConfig")) return;
      throw new ServiceError("Alias with weights can not be used with Provisioned Concurrency");
    },
  },
  "AWS::Lambda::EventSourceMapping": {
    create(account, { FunctionName }) {
      const isAlias = of(account, "AWS::Lambda::Alias").some((alias) => referenceTo(alias) === FunctionName);
      if (!isAlias) required(account, "AWS::Lambda::Function", nameOfArn(FunctionName), "FunctionName");
    },
  },
  "AWS::S3::Bucket": {
    create(account, properties) {
      for (const queue of notifiedQueues(properties)) {
        const { id } = required(
          account,
          "AWS::SQS::Queue",
          queue,
          "Unable to validate the following destination configurations",
        );
        const policies = of(account, "AWS::SQS::QueuePolicy").filter(({ properties: { Queues } }) =>
          listed(Queues).some((url) => nameOfArn(url) === id),
        );
        const admits = policies.some((policy) => JSON.stringify(policy.properties).includes("s3.amazonaws.com"));
        if (!admits)
          throw new ServiceError(
            `Unable to validate the following destination configurations: ${queue} does not admit S3`,
          );
      }
    },
    remove(account, { id }) {
      if ((account.objects.get(id)?.size ?? 0) > 0)
        throw new ServiceError("The bucket you tried to delete is not empty");
    },
  },
  "Custom::CDKBucketDeployment": {
    create({ objects }, { DestinationBucketName }) {
      objects.get(String(DestinationBucketName))?.set("index.html", Buffer.from("page"));
    },
  },
  "AWS::DynamoDB::Table": {
    remove(_, { properties }) {
      if (properties.DeletionProtectionEnabled !== true) return;
      throw new ServiceError(
        "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.",
      );
    },
  },
  "AWS::Cognito::UserPool": {
    create(account, { EmailConfiguration }) {
      const sender = at(EmailConfiguration, "SourceArn");
      const identity = nameOfArn(sender);
      if (sender === undefined || account.verifiedSenders.has(identity)) return;
      throw new ServiceError(`Email address is not verified: ${identity}`);
    },
    remove(account, { id, properties }) {
      if (properties.DeletionProtection === "ACTIVE") {
        throw new ServiceError(
          "The user pool cannot be deleted because deletion protection is activated. Deletion protection must be inactivated first.",
        );
      }
      if (signInDomains(account, ({ UserPoolId }) => UserPoolId === id).length > 0) {
        throw new ServiceError("User pool cannot be deleted. It has a domain configured that should be deleted first.");
      }
    },
  },
  "AWS::Cognito::UserPoolDomain": {
    create(account, { Domain, UserPoolId }, made) {
      required(account, "AWS::Cognito::UserPool", UserPoolId, "User pool does not exist");
      const others = signInDomains(account, (one) => one.UserPoolId === UserPoolId || one.Domain === Domain);
      const [other] = others.filter((one) => one !== made);
      if (other === undefined) return;
      throw new ServiceError(
        other.properties.UserPoolId === UserPoolId
          ? "User pool already has a domain configured."
          : "Domain already associated with another user pool.",
      );
    },
  },
  "AWS::ApiGateway::Stage": {
    create(account, { MethodSettings }) {
      const logs = listed(MethodSettings).some((one) => (at(one, "LoggingLevel") ?? "OFF") !== "OFF");
      const role = of(account, "AWS::ApiGateway::Account").at(-1)?.properties.CloudWatchRoleArn;
      if (logs && (role === undefined || find(account, "AWS::IAM::Role", nameOfArn(role)) === undefined)) {
        throw new ServiceError("CloudWatch Logs role ARN must be set in account settings to enable logging");
      }
    },
    remove(account, { properties: { RestApiId, StageName } }) {
      const mapped = mappingsOf(account, (one) => one.RestApiId === RestApiId && one.Stage === StageName);
      if (mapped.length === 0) return;
      throw new ServiceError(
        `Deleting stage ${String(StageName)} failed. Please remove all base path mappings related to the stage in your domain`,
      );
    },
  },
  "AWS::ApiGateway::DomainName": {
    create(_, { RegionalCertificateArn }) {
      if (String(RegionalCertificateArn).split(":")[3] === REGION) return;
      throw new ServiceError(
        `Invalid certificate ARN: ${String(RegionalCertificateArn)}. Certificate must be in '${REGION}'.`,
      );
    },
    remove(account, { id }) {
      const [mapping] = mappingsOf(account, ({ DomainName }) => DomainName === id);
      if (mapping !== undefined) throw new ServiceError(`The domain name ${id} still has base path mappings`);
    },
  },
  "AWS::ApiGateway::BasePathMapping": {
    create(account, { DomainName, RestApiId, Stage, BasePath }, made) {
      required(account, "AWS::ApiGateway::DomainName", DomainName, "Invalid domain name identifier specified");
      required(
        account,
        "AWS::ApiGateway::Stage",
        `${String(RestApiId)}|${String(Stage)}`,
        "Invalid stage identifier specified",
      );
      const same = mappingsOf(account, (one) => one.DomainName === DomainName && one.BasePath === BasePath);
      if (same.some((other) => other !== made)) throw new ServiceError("Base path already exists for this domain name");
    },
  },
};
