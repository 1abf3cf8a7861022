/**
 * Lists the rights of the people who operate a deployment: the deployer, the on-call person and the eraser (who manages whole companies and
 * can erase them). `npm run permissions` writes them into docs/permissions.md, and a policy for each person into docs/policies/. A test
 * runs the commands of the on-call person and of the eraser, and compares the actions of these commands with the rights.
 */
export type Person = "deployer" | "on-call" | "eraser";

interface Right {
  readonly actions: readonly string[];
  /** ARN patterns. Their account and region are `*`, so that the same policy is valid for each deployment. */
  readonly resources: readonly string[];
  readonly why: string;
  readonly condition?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The reason why the test that runs the commands cannot see that a command uses the right. Undefined if the test can see it. */
  readonly unseen?: string;
}

interface Rights {
  readonly does: string;
  readonly rights: readonly Right[];
}

const stacks = ["arn:aws:cloudformation:*:*:stack/Canvassing*"];
const tables = ["arn:aws:dynamodb:*:*:table/Canvassing*"];
const rows = [...tables, "arn:aws:dynamodb:*:*:table/Canvassing*/index/*"];
const streams = ["arn:aws:dynamodb:*:*:table/Canvassing*/stream/*"];
const pools = ["arn:aws:cognito-idp:*:*:userpool/*"];
const parameter = (name: string): string[] => [`arn:aws:ssm:*:*:parameter/${name}`];
const passesRole: Right = {
  actions: ["iam:PassRole"],
  resources: ["arn:aws:iam::*:role/Canvassing*"],
  condition: { StringEquals: { "iam:PassedToService": "backup.amazonaws.com" } },
  why: "gives AWS Backup its role for this work",
  unseen: "IAM checks this right without a request of its own",
};

const findsStack: Right = {
  actions: ["cloudformation:DescribeStacks"],
  resources: stacks,
  why: "each command reads the names of table, queues and bucket from the outputs of the stack",
};

export const people: Readonly<Record<Person, Rights>> = {
  deployer: {
    does: "deploys, updates and destroys the stacks, and runs the `aws` commands of [Deploy](deploy.md)",
    rights: [
      {
        actions: ["sts:AssumeRole"],
        resources: ["arn:aws:iam::*:role/cdk-*"],
        why: "`npx cdk deploy` and `npx cdk destroy` use the roles that `npx cdk bootstrap` has made",
      },
      {
        actions: ["cloudformation:DescribeStackResources"],
        resources: stacks,
        why: "names the API whose own URL must be off",
      },
      {
        actions: ["cloudformation:UpdateTerminationProtection"],
        resources: stacks,
        why: "removes the protection of the data stack before its deletion",
      },
      {
        actions: ["cognito-idp:AdminSetUserPassword", "cognito-idp:AdminInitiateAuth"],
        resources: pools,
        why: "signs the first owner in without an app",
      },
      {
        actions: ["ssm:PutParameter"],
        resources: parameter("canvassing/*"),
        why: "stores the secret of the console's client",
      },
      {
        actions: ["lambda:UpdateAlias"],
        resources: ["arn:aws:lambda:*:*:function:Canvassing*"],
        why: "ends the move of an alias that a deployment has left between two versions",
      },
    ],
  },
  "on-call": {
    does: "gets the alarms, and runs the commands of the [runbook](runbook.md), except those of the deployer",
    rights: [
      findsStack,
      {
        actions: [
          ...["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"],
          ...["dynamodb:BatchWriteItem", "dynamodb:ConditionCheckItem"],
        ],
        resources: rows,
        why: "`index`, `webhooks`, `canary` and `dead-letters` read, check and repair rows",
      },
      {
        actions: ["dynamodb:PartiQLInsert"],
        resources: tables,
        why: "`dead-letters -- redrive parked-records` creates deliveries as the function `events/publish` does",
      },
      {
        actions: ["dynamodb:ListStreams", "dynamodb:GetShardIterator", "dynamodb:GetRecords"],
        resources: streams,
        why: "`dead-letters -- redrive` reads the changes whose positions a message contains",
      },
      {
        actions: ["sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:SendMessage"],
        resources: ["arn:aws:sqs:*:*:Canvassing*"],
        why: "`dead-letters` counts messages and sends them again",
      },
      {
        actions: ["cloudformation:DescribeStackResources", "cloudformation:GetTemplate"],
        resources: stacks,
        why: "`senders` finds the event source mapping of the delivery queue",
      },
      {
        actions: ["lambda:ListEventSourceMappings"],
        resources: ["*"],
        why: "`senders` finds the mapping; IAM has no resources for this action",
      },
      {
        actions: ["lambda:GetEventSourceMapping", "lambda:UpdateEventSourceMapping"],
        resources: ["arn:aws:lambda:*:*:event-source-mapping:*"],
        why: "`senders` stops and starts the senders of webhooks",
      },
      {
        actions: ["cognito-idp:AdminGetUser", "cognito-idp:AdminCreateUser", "cognito-idp:AdminSetUserPassword"],
        resources: pools,
        why: "`canary` creates the user of the smoke test",
      },
      {
        actions: ["ssm:PutParameter"],
        resources: parameter("Canvassing*"),
        why: "`canary` stores the password of this user",
      },
      {
        actions: ["backup:ListBackupVaults", "backup:ListBackupJobs", "backup:ListCopyJobs", "backup:ListRestoreJobs"],
        resources: ["*"],
        why: "finds the vault and the failed jobs; IAM has no resources for these actions",
      },
      {
        actions: ["events:ListRules"],
        resources: ["*"],
        why: "finds a disabled rule; IAM has no resources for this action",
      },
      {
        actions: ["events:EnableRule"],
        resources: ["arn:aws:events:*:*:rule/Canvassing*"],
        why: "enables a disabled rule",
      },
      {
        actions: ["servicequotas:GetServiceQuota"],
        resources: ["*"],
        why: "reads the quota of concurrent executions; IAM has no resources for this action",
      },
      {
        actions: ["servicequotas:RequestServiceQuotaIncrease"],
        resources: ["arn:aws:servicequotas:*:*:lambda/L-B99A9384"],
        why: "asks for a higher quota of concurrent executions",
      },
      {
        actions: ["backup:StartBackupJob"],
        resources: ["arn:aws:backup:*:*:backup-vault:Canvassing*"],
        why: "makes a missing copy",
      },
      passesRole,
      {
        actions: [
          ...["cloudwatch:DescribeAlarms", "cloudwatch:GetDashboard", "cloudwatch:ListDashboards"],
          ...["cloudwatch:GetMetricData", "logs:DescribeLogGroups", "logs:DescribeQueryDefinitions"],
          ...["logs:GetQueryResults", "logs:StopQuery"],
        ],
        resources: ["*"],
        why: "opens the dashboard and finds the saved queries in the console of AWS",
        unseen: "no command of this project does this",
      },
      {
        actions: ["logs:StartQuery"],
        resources: ["arn:aws:logs:*:*:log-group:Canvassing*", "arn:aws:logs:*:*:log-group:/aws/events/Canvassing*"],
        why: "runs the saved queries, and reads the log of the backups. Other logs of the account stay unreadable",
        unseen: "no command of this project does this",
      },
    ],
  },
  eraser: {
    does: "creates, suspends, exports and deletes companies, and [restores](keep.md) the table or a company",
    rights: [
      findsStack,
      {
        actions: [
          ...["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:PutItem"],
          ...["dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"],
        ],
        resources: rows,
        why: "reads, copies and deletes the rows of a company. A restore needs the same rights to the new table",
      },
      {
        actions: [
          ...["dynamodb:DescribeTable", "dynamodb:DescribeContinuousBackups", "dynamodb:DescribeTimeToLive"],
          ...["dynamodb:GetResourcePolicy", "dynamodb:ListTagsOfResource"],
        ],
        resources: tables,
        why: "`restore` reads the settings of the table",
      },
      {
        actions: [
          ...["dynamodb:RestoreTableToPointInTime", "dynamodb:UpdateTable", "dynamodb:UpdateContinuousBackups"],
          ...["dynamodb:UpdateTimeToLive", "dynamodb:TagResource", "dynamodb:PutResourcePolicy"],
        ],
        resources: tables,
        why: "`restore` makes the new table, and gives it the settings of the old one",
      },
      {
        actions: ["dynamodb:DeleteTable"],
        resources: tables,
        why: "`restore -- delete` deletes a restored table. It refuses the table that the service uses",
      },
      {
        actions: ["dynamodb:ListTables"],
        resources: ["*"],
        why: "`company -- check` finds restored tables that still contain the company; IAM has no resources for this action",
      },
      {
        actions: ["s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        resources: ["arn:aws:s3:::canvassing*"],
        why: "`company` exports, counts and deletes the files of a company",
      },
      {
        actions: ["cognito-idp:AdminGetUser", "cognito-idp:AdminCreateUser", "cognito-idp:AdminDeleteUser"],
        resources: pools,
        why: "`company` invites the owner, and deletes the users of a deleted company",
      },
      {
        actions: ["backup:ListBackupVaults", "backup:DescribeRestoreJob"],
        resources: ["*"],
        why: "finds the vault, and waits for the restore of a copy; IAM has no resources for these actions",
      },
      {
        actions: ["backup:ListRecoveryPointsByBackupVault"],
        resources: ["arn:aws:backup:*:*:backup-vault:Canvassing*"],
        why: "finds the copy",
      },
      {
        actions: ["backup:StartRestoreJob"],
        resources: ["*"],
        why: "restores a copy. AWS Backup makes the ids of its copies, so the pattern allows all of them",
      },
      passesRole,
    ],
  },
};

export const policyFile = (person: Person): string => `docs/policies/${person}.json`;

export const persons = ["deployer", "on-call", "eraser"] as const satisfies readonly Person[];

/** Returns the IAM policy of a person. An administrator of the account can paste it into IAM. */
export const policyOf = (person: Person) => ({
  Version: "2012-10-17",
  Statement: people[person].rights.map(({ actions, resources, condition }) => ({
    Effect: "Allow",
    Action: actions,
    Resource: resources,
    ...(condition !== undefined && { Condition: condition }),
  })),
});

export const policyText = (person: Person): string => `${JSON.stringify(policyOf(person), null, 2)}\n`;

/** The limit of a managed policy, without white space. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html */
const MANAGED = 6_144;

export function sizeOf(person: Person): number {
  const size = JSON.stringify(policyOf(person)).length;
  if (size > MANAGED) throw new Error(`the policy of ${person} has ${size} characters, and IAM permits ${MANAGED}`);
  return size;
}

/** Returns the section of docs/permissions.md about people. */
export function peopleSection(): string {
  const rights = persons.flatMap((person) =>
    people[person].rights.map(({ actions, resources, why, unseen }, at) => {
      const note = unseen === undefined ? "" : ` (not tested: ${unseen})`;
      const cells = [at === 0 ? person : "", actions, resources].map((cell) =>
        typeof cell === "string" ? cell : cell.map((one) => `\`${one}\``).join(", "),
      );
      return `| ${[...cells, `${why}${note}`].join(" | ")} |`;
    }),
  );
  return [
    "## People",
    "",
    "These people operate a deployment. Each has a policy, which an administrator of the account can paste into IAM as a managed policy. Without",
    `white space, IAM permits a managed policy ${MANAGED} characters, and all inline policies of a user together 2048:`,
    "",
    ...persons.map(
      (person) => `- [${person}](policies/${person}.json), ${sizeOf(person)} characters: ${people[person].does}.`,
    ),
    "",
    "`npx cdk bootstrap` makes five roles with all rights that a deployment needs, so an administrator of the account runs it once. The deployer",
    "then needs only the right to use these roles:",
    "",
    "| role of `npx cdk bootstrap` | used by | may |",
    "|---|---|---|",
    "| `cdk-hnb659fds-deploy-role-…` | `npx cdk deploy`, `npx cdk destroy` | create, change and delete stacks, read templates from the bucket of `cdk` |",
    "| `cdk-hnb659fds-file-publishing-role-…` | `npx cdk deploy` | write templates and the code of functions into the bucket of `cdk` |",
    "| `cdk-hnb659fds-cfn-exec-role-…` | CloudFormation | everything: by default it is an administrator. `npx cdk bootstrap --cloudformation-execution-policies ARN` gives it another policy |",
    "| `cdk-hnb659fds-lookup-role-…` | `npx cdk drift` | read everything, except to decrypt by KMS |",
    "| `cdk-hnb659fds-image-publishing-role-…` | nothing here | write container images |",
    "",
    "`npx cdk bootstrap` itself creates these roles, a bucket, a repository of container images and a parameter. It therefore needs the",
    "rights of an administrator. `npx cdk drift` reads the settings of all resources with the rights of the person who runs it. The deployer runs it",
    "with the role for reading, by this profile in `~/.aws/config`. `source_profile` is the deployer's own profile:",
    "",
    "```ini",
    "[profile canvassing-reader]",
    "role_arn = arn:aws:iam::ACCOUNT:role/cdk-hnb659fds-lookup-role-ACCOUNT-REGION",
    "source_profile = default",
    "region = REGION",
    "```",
    "",
    "The policy of the KMS key refuses decryption to everybody except the functions, so no policy of a person contains a right to KMS.",
    "",
    "The policies name tables, queues and stacks by the prefix `Canvassing`. A restored table must therefore have a name with this prefix. The",
    "policies name neither account nor region, and allow all user pools of the account, because AWS chooses the id of a pool.",
    "",
    "[A test](../test/security/people.long.test.ts) runs the commands of the on-call person and of the eraser, and compares the actions of their",
    "requests with this table. It knows the actions of `aws` commands from the models of the AWS SDK, and those of EventBridge and Service Quotas",
    "from a [list](../test/harness/aws-cli.ts). [Another test](../test/infra/stack/deploy.long.test.ts) deploys, destroys and adopts with the real",
    "command `cdk`. It compares the requests of the deployer with this table, and the requests of the roles with the template of `npx cdk",
    "bootstrap`. Without an AWS account, no test can show that IAM accepts a policy, that the patterns of the resources match, or which rights the",
    "role of CloudFormation needs.",
    "",
    "| person | actions | on | why |",
    "|---|---|---|---|",
    ...rights,
  ].join("\n");
}
