/**
 * Lists the rights of the people who operate a deployment: the deployer, the on-call person and the eraser (who manages whole companies and
 * can erase them). `npm run permissions` writes them into docs/permissions.md, and a policy for each person into docs/policies/. A test
 * runs the commands of the on-call person and of the eraser, and compares the actions of these commands with the rights.
 */
import { row, table } from "../build/generated.ts";

export const persons = ["deployer", "on-call", "eraser"] as const;
export type Person = (typeof persons)[number];

interface Right {
  readonly actions: readonly string[];
  /** ARN patterns. Their account and region are `*`, so that the same policy is valid for each deployment. */
  readonly resources: readonly string[];
  readonly why: string;
  readonly condition?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The reason why the test that runs the commands cannot see that a command uses the right. Undefined if the test can see it. */
  readonly unseen?: string;
}

type Further = Pick<Right, "condition" | "unseen">;

/** Returns a right. `actions` names each service once, for example `dynamodb:GetItem PutItem, sqs:SendMessage`. */
const right = (why: string, actions: string, resources: readonly string[], further: Further = {}): Right => ({
  actions: actions.split(", ").flatMap((one) => {
    const [service, names = ""] = one.split(":");
    return names.split(" ").map((name) => `${service}:${name}`);
  }),
  resources,
  why,
  ...further,
});

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
const passesRole = right(
  "gives AWS Backup its role for this work",
  "iam:PassRole",
  ["arn:aws:iam::*:role/Canvassing*"],
  {
    condition: { StringEquals: { "iam:PassedToService": "backup.amazonaws.com" } },
    unseen: "IAM checks this right without a request of its own",
  },
);

const findsStack = right(
  "each command reads the names of table, queues and bucket from the outputs of the stack",
  "cloudformation:DescribeStacks",
  stacks,
);

export const people: Readonly<Record<Person, Rights>> = {
  deployer: {
    does: "deploys, updates and destroys the stacks, and runs the `aws` commands of [Deploy](deploy.md)",
    rights: [
      right(
        "`npx cdk deploy` and `npx cdk destroy` use the roles that `npx cdk bootstrap` has made",
        "sts:AssumeRole",
        ["arn:aws:iam::*:role/cdk-*"],
      ),
      right("names the API whose own URL must be off", "cloudformation:DescribeStackResources", stacks),
      right(
        "removes the protection of the data stack before its deletion",
        "cloudformation:UpdateTerminationProtection",
        stacks,
      ),
      right("signs the first owner in without an app", "cognito-idp:AdminSetUserPassword AdminInitiateAuth", pools),
      right("stores the secret of the console's client", "ssm:PutParameter", parameter("canvassing/*")),
      right("ends the move of an alias that a deployment has left between two versions", "lambda:UpdateAlias", [
        "arn:aws:lambda:*:*:function:Canvassing*",
      ]),
    ],
  },
  "on-call": {
    does: "gets the alarms, and runs the commands of the [runbook](runbook.md), except those of the deployer",
    rights: [
      findsStack,
      right(
        "`index`, `webhooks`, `canary` and `dead-letters` read, check and repair rows",
        "dynamodb:GetItem BatchGetItem Query PutItem UpdateItem BatchWriteItem ConditionCheckItem",
        rows,
      ),
      right(
        "`dead-letters -- redrive parked-records` creates deliveries as the function `events/publish` does",
        "dynamodb:PartiQLInsert",
        tables,
      ),
      right(
        "`dead-letters -- redrive` reads the changes whose positions a message contains",
        "dynamodb:ListStreams GetShardIterator GetRecords",
        streams,
      ),
      right(
        "`dead-letters` counts messages and sends them again",
        "sqs:GetQueueAttributes ReceiveMessage DeleteMessage SendMessage",
        ["arn:aws:sqs:*:*:Canvassing*"],
      ),
      right(
        "`senders` finds the event source mapping of the delivery queue",
        "cloudformation:DescribeStackResources GetTemplate",
        stacks,
      ),
      right("`senders` finds the mapping; IAM has no resources for this action", "lambda:ListEventSourceMappings", [
        "*",
      ]),
      right(
        "`senders` stops and starts the senders of webhooks",
        "lambda:GetEventSourceMapping UpdateEventSourceMapping",
        ["arn:aws:lambda:*:*:event-source-mapping:*"],
      ),
      right(
        "`canary` creates the user of the smoke test",
        "cognito-idp:AdminGetUser AdminCreateUser AdminSetUserPassword",
        pools,
      ),
      right("`canary` stores the password of this user", "ssm:PutParameter", parameter("Canvassing*")),
      right(
        "finds the vault and the failed jobs; IAM has no resources for these actions",
        "backup:ListBackupVaults ListBackupJobs ListCopyJobs ListRestoreJobs",
        ["*"],
      ),
      right("finds a disabled rule; IAM has no resources for this action", "events:ListRules", ["*"]),
      right("enables a disabled rule", "events:EnableRule", ["arn:aws:events:*:*:rule/Canvassing*"]),
      right(
        "reads the quota of concurrent executions; IAM has no resources for this action",
        "servicequotas:GetServiceQuota",
        ["*"],
      ),
      right("asks for a higher quota of concurrent executions", "servicequotas:RequestServiceQuotaIncrease", [
        "arn:aws:servicequotas:*:*:lambda/L-B99A9384",
      ]),
      right("makes a missing copy", "backup:StartBackupJob", ["arn:aws:backup:*:*:backup-vault:Canvassing*"]),
      passesRole,
      right(
        "opens the dashboard and finds the saved queries in the console of AWS",
        "cloudwatch:DescribeAlarms GetDashboard ListDashboards GetMetricData, logs:DescribeLogGroups DescribeQueryDefinitions GetQueryResults StopQuery",
        ["*"],
        { unseen: "no command of this project does this" },
      ),
      right(
        "runs the saved queries, and reads the log of the backups. Other logs of the account stay unreadable",
        "logs:StartQuery",
        ["arn:aws:logs:*:*:log-group:Canvassing*", "arn:aws:logs:*:*:log-group:/aws/events/Canvassing*"],
        { unseen: "no command of this project does this" },
      ),
    ],
  },
  eraser: {
    does: "creates, suspends, exports and deletes companies, and [restores](keep.md) the table or a company",
    rights: [
      findsStack,
      right(
        "reads, copies and deletes the rows of a company, and creates a key. A restore needs the same rights to the new table",
        "dynamodb:GetItem BatchGetItem Query Scan PutItem UpdateItem DeleteItem BatchWriteItem ConditionCheckItem",
        rows,
      ),
      right(
        "`restore` reads the settings of the table",
        "dynamodb:DescribeTable DescribeContinuousBackups DescribeTimeToLive GetResourcePolicy ListTagsOfResource",
        tables,
      ),
      right(
        "`restore` makes the new table, and gives it the settings of the old one",
        "dynamodb:RestoreTableToPointInTime UpdateTable UpdateContinuousBackups UpdateTimeToLive TagResource PutResourcePolicy",
        tables,
      ),
      right(
        "`restore -- delete` deletes a restored table. It refuses the table that the service uses",
        "dynamodb:DeleteTable",
        tables,
      ),
      right(
        "`company -- check` finds restored tables that still contain the company; IAM has no resources for this action",
        "dynamodb:ListTables",
        ["*"],
      ),
      right(
        "`company` exports, counts and deletes the files of a company",
        "s3:ListBucket GetObject PutObject DeleteObject",
        ["arn:aws:s3:::canvassing*"],
      ),
      right(
        "`company` invites the owner, and deletes the users of a deleted company",
        "cognito-idp:AdminGetUser AdminCreateUser AdminDeleteUser",
        pools,
      ),
      right(
        "finds the vault, and waits for the restore of a copy; IAM has no resources for these actions",
        "backup:ListBackupVaults DescribeRestoreJob",
        ["*"],
      ),
      right("finds the copy", "backup:ListRecoveryPointsByBackupVault", [
        "arn:aws:backup:*:*:backup-vault:Canvassing*",
      ]),
      right(
        "restores a copy. AWS Backup makes the ids of its copies, so the pattern allows all of them",
        "backup:StartRestoreJob",
        ["*"],
      ),
      passesRole,
    ],
  },
};

export const policyFile = (person: Person): string => `docs/policies/${person}.json`;

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

/** Maximum characters of a managed policy without spaces. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html */
const MANAGED = 6_144;

export function sizeOf(person: Person): number {
  const size = JSON.stringify(policyOf(person)).length;
  if (size > MANAGED) throw new Error(`the policy of ${person} has ${size} characters, and IAM permits ${MANAGED}`);
  return size;
}

export const code = (cells: readonly string[]): string => cells.map((one) => `\`${one}\``).join(", ");

export function peopleParts(): Readonly<Record<string, string>> {
  const rights = persons.flatMap((person) =>
    people[person].rights.map(({ actions, resources, why, unseen }, at) => {
      const note = unseen === undefined ? "" : ` (not tested: ${unseen})`;
      return row(at === 0 ? person : "", code(actions), code(resources), `${why}${note}`);
    }),
  );
  const list = persons.map(
    (person) => `- [${person}](policies/${person}.json), ${sizeOf(person)} characters: ${people[person].does}.`,
  );
  return {
    people: list.join("\n"),
    "rights of people": table(["person", "actions", "on", "why"], rights),
  };
}
