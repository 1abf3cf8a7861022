/**
 * Tests rules that hold for all resources of one type in the CloudFormation template, for example for all queues. The rules of cdk-nag have
 * no test here, because `cdk synth` fails if a resource violates one (see app.long.test.ts): encryption, TLS, no public access.
 */
import { describe, expect, it } from "vitest";
import { DUE_INDEX } from "#shared/db/keys.ts";
import { publishedPatterns } from "#shared/webhooks/events/row-events.ts";
import { canary, eventFunctions, routes } from "../../../infra/routes/routes.ts";
import { functionFiles } from "../../../infra/synth.ts";
import {
  at,
  closed,
  listed,
  ownIdentity,
  small,
  synthesized,
  type Template,
  target,
  withoutCanary,
} from "../template.ts";

const DAY_SECONDS = 86_400;
const NEW_ACCOUNT_MB = 3_008;
const NEW_ACCOUNT_EXECUTIONS = 10;

const template = await synthesized();

const queues = template.all("AWS::SQS::Queue");
const deadLetterOf = (properties: unknown) => target(at(properties, "RedrivePolicy", "deadLetterTargetArn"));

describe("storage", () => {
  it("is one protected table with point-in-time recovery, a TTL on `expiresAt` and a stream of every change", () => {
    expect(template.only("AWS::DynamoDB::Table").properties).toMatchObject({
      BillingMode: "PAY_PER_REQUEST",
      DeletionProtectionEnabled: true,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true, RecoveryPeriodInDays: 35 },
      StreamSpecification: { StreamViewType: "NEW_AND_OLD_IMAGES" },
      TimeToLiveSpecification: { AttributeName: "expiresAt", Enabled: true },
      KeySchema: [
        { AttributeName: "pk", KeyType: "HASH" },
        { AttributeName: "sk", KeyType: "RANGE" },
      ],
      GlobalSecondaryIndexes: [
        {
          IndexName: DUE_INDEX.name,
          KeySchema: [
            { AttributeName: DUE_INDEX.partitionKey, KeyType: "HASH" },
            { AttributeName: DUE_INDEX.sortKey, KeyType: "RANGE" },
          ],
          Projection: { ProjectionType: "KEYS_ONLY" },
        },
      ],
    });
  });

  it("is a bucket that removes abandoned uploads", () => {
    const rules = listed(at(template.only("AWS::S3::Bucket").properties, "LifecycleConfiguration", "Rules"));
    expect(rules).toContainEqual(
      expect.objectContaining({ AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 }, Status: "Enabled" }),
    );
  });

  it("lets pages of the allowed origins use links, and no page if no origin is allowed", async () => {
    const bucket = template.only("AWS::S3::Bucket");
    expect(at(bucket.properties, "CorsConfiguration", "CorsRules")).toEqual([
      expect.objectContaining({
        AllowedOrigins: ownIdentity.allowedOrigins,
        AllowedMethods: ["PUT", "GET", "HEAD"],
        AllowedHeaders: ["content-type", "if-none-match", "x-amz-checksum-sha256"],
      }),
    ]);
    const { only } = await synthesized(closed);
    expect(only("AWS::S3::Bucket").properties.CorsConfiguration).toBeUndefined();
  });
});

describe("queues", () => {
  it("have one policy each, which names only this queue, as SQS requires", () => {
    const policies = template.all("AWS::SQS::QueuePolicy");
    const covered = policies.map(({ id, properties }) => {
      const named = listed(at(properties, "Queues")).map(target);
      const resources = listed(at(properties, "PolicyDocument", "Statement")).flatMap((statement) =>
        listed(at(statement, "Resource")).map(target),
      );
      expect(new Set(resources), id).toEqual(new Set(named));
      return named;
    });
    expect(covered.flat().toSorted()).toEqual(queues.map(({ id }) => id).toSorted());
    for (const named of covered) expect(named).toHaveLength(1);
  });

  it("allow the bucket's notifications before the bucket exists, because S3 tests the queue at once", () => {
    const bucket = template.only("AWS::S3::Bucket");
    const [notified, ...more] = listed(at(bucket.properties, "NotificationConfiguration", "QueueConfigurations")).map(
      (entry) => target(at(entry, "Queue")),
    );
    expect(more).toEqual([]);
    const policy = template
      .all("AWS::SQS::QueuePolicy")
      .find(({ properties }) => listed(at(properties, "Queues")).map(target).includes(notified));
    expect(bucket.resource.DependsOn).toContain(policy?.id);
    expect(listed(at(policy?.properties, "PolicyDocument", "Statement"))).toContainEqual(
      expect.objectContaining({
        Effect: "Allow",
        Action: "sqs:SendMessage",
        Principal: { Service: "s3.amazonaws.com" },
        Condition: { StringEquals: { "aws:SourceAccount": { Ref: "AWS::AccountId" } } },
      }),
    );
  });

  it("have a dead-letter queue after 3 to 10 attempts, which keeps messages for 14 days and longer than the queue does", () => {
    const sources = queues.filter(({ properties }) => deadLetterOf(properties) !== undefined);
    expect(sources.length).toBeGreaterThan(0);
    for (const { id, properties } of sources) {
      const deadLetters = queues.find((queue) => queue.id === deadLetterOf(properties));
      expect(deadLetters?.properties.MessageRetentionPeriod, id).toBe(14 * DAY_SECONDS);
      expect(properties.MessageRetentionPeriod, id).toBeLessThan(14 * DAY_SECONDS);
      const tries = at(properties, "RedrivePolicy", "maxReceiveCount");
      expect(tries, id).toBeGreaterThanOrEqual(3);
      expect(tries, id).toBeLessThanOrEqual(10);
    }
  });

  it("without a dead-letter queue are themselves the destination of failed work", () => {
    const stations = [
      ...queues.map(({ properties }) => deadLetterOf(properties)),
      ...template
        .all("AWS::Lambda::EventSourceMapping")
        .map(({ properties }) => target(at(properties, "DestinationConfig", "OnFailure", "Destination"))),
    ];
    for (const { id, properties } of queues) {
      if (deadLetterOf(properties) === undefined) expect(stations).toContain(id);
    }
  });

  it("for dead letters have an alarm each, which the first message triggers", () => {
    for (const { id, properties } of queues) {
      if (deadLetterOf(properties) !== undefined) continue;
      const alarms = template
        .all("AWS::CloudWatch::Alarm")
        .filter((alarm) => at(alarm.properties, "Dimensions", 0, "Value", "Fn::GetAtt", 0) === id);
      expect(alarms, id).toHaveLength(1);
      expect(alarms[0]?.properties).toMatchObject({
        MetricName: "ApproximateNumberOfMessagesVisible",
        Threshold: 0,
        ComparisonOperator: "GreaterThanThreshold",
      });
    }
  });

  it("hide a message for at least six times its consumer's timeout and batching window", () => {
    for (const { id, properties } of template.all("AWS::Lambda::EventSourceMapping")) {
      const queue = queues.find((candidate) => candidate.id === target(properties.EventSourceArn));
      if (queue === undefined) continue;
      const consumer = template.resources[template.invokedBy(properties.FunctionName) ?? ""];
      const window = Number(properties.MaximumBatchingWindowInSeconds ?? 0);
      expect(queue.properties.VisibilityTimeout, id).toBeGreaterThanOrEqual(
        6 * Number(consumer?.Properties.Timeout) + window,
      );
    }
  });
});

describe("event sources", () => {
  const mapped = (file: string) =>
    template
      .all("AWS::Lambda::EventSourceMapping")
      .filter(({ properties }) => template.invokedBy(properties.FunctionName) === template.functionOf(file).id);

  it("report failures of single records, without exception", () => {
    for (const { id, properties } of template.all("AWS::Lambda::EventSourceMapping")) {
      expect(properties.FunctionResponseTypes, id).toEqual(["ReportBatchItemFailures"]);
    }
  });

  it("feed the publisher from the start of the stream, with bisection, bounded retries and a destination for failures", () => {
    const [stream, ...more] = mapped(eventFunctions.publish.file);
    expect(more).toEqual([]);
    expect(stream?.properties).toMatchObject({
      StartingPosition: "TRIM_HORIZON",
      BisectBatchOnFunctionError: true,
      DestinationConfig: { OnFailure: { Destination: expect.anything() } },
      FilterCriteria: { Filters: publishedPatterns().map((pattern) => ({ Pattern: JSON.stringify(pattern) })) },
    });
    expect(stream?.properties.MaximumRetryAttempts).toBeGreaterThan(0);
    expect(stream?.properties.MaximumRecordAgeInSeconds).toBeLessThan(DAY_SECONDS);
  });

  it("hand messages to the deliverer without delay, bound its concurrency, and let it report each message", () => {
    const [messages, ...more] = mapped(eventFunctions.deliver.file);
    expect(more).toEqual([]);
    expect(messages?.properties).toMatchObject({ BatchSize: 10, FunctionResponseTypes: ["ReportBatchItemFailures"] });
    expect(messages?.properties).not.toHaveProperty("MaximumBatchingWindowInSeconds");
    expect(at(messages?.properties, "ScalingConfig", "MaximumConcurrency")).toBeGreaterThan(1);
  });

  it("run the sweeper every minute and tell it that the queues have lost no messages", () => {
    const [rule, ...more] = template
      .all("AWS::Events::Rule")
      .filter(({ properties }) => properties.ScheduleExpression === "rate(1 minute)");
    expect(more).toEqual([]);
    expect(rule?.properties).toMatchObject({ Targets: [{ Input: '{"assume":"messages-kept"}' }] });
    expect(target(at(rule?.properties, "Targets", 0, "Arn"))).toBe(template.functionOf(eventFunctions.sweep.file).id);
  });
});

describe("the scheduled smoke test", () => {
  it("runs every five minutes in production, without a retry and without access to data, and reads one parameter", () => {
    const run = template.functionOf(canary.file);
    const rules = template
      .all("AWS::Events::Rule")
      .filter(({ properties }) => target(at(properties, "Targets", 0, "Arn")) === run.id);
    expect(rules).toMatchObject([{ properties: { ScheduleExpression: "rate(5 minutes)" } }]);
    expect(template.only("AWS::Lambda::EventInvokeConfig").properties).toMatchObject({
      FunctionName: { Ref: run.id },
      MaximumRetryAttempts: 0,
    });
    const statements = template.statementsOf(canary.file);
    expect(statements.flatMap((statement) => listed(at(statement, "Action")))).toEqual([
      "logs:CreateLogStream",
      "logs:PutLogEvents",
      "ssm:GetParameter",
      "cognito-idp:AdminInitiateAuth",
    ]);
    expect(JSON.stringify(statements)).toContain(`:parameter/Canvassing/canary"`);
  });

  it("does not exist if the setting is off", async () => {
    const { all } = await synthesized(withoutCanary);
    expect(all("AWS::Lambda::Function").filter(({ resource }) => resource.Metadata.file === canary.file)).toEqual([]);
    expect(all("AWS::Events::Rule")).toHaveLength(1);
  });
});

describe("functions", () => {
  it("are exactly the functions of the route table and the event functions", () => {
    const files = template.all("AWS::Lambda::Function").map(({ resource }) => resource.Metadata.file);
    expect(files.toSorted()).toEqual(functionFiles().toSorted());
    expect(new Set(files).size).toBe(files.length);
  });

  const logGroupOf = (file: string) => target(at(template.functionOf(file).properties, "LoggingConfig", "LogGroup"));

  it("run Node 24 on arm64", () => {
    for (const { id, properties } of template.all("AWS::Lambda::Function")) {
      expect(properties, id).toMatchObject({
        Runtime: "nodejs24.x",
        Architectures: ["arm64"],
        Handler: "index.handler",
      });
    }
  });

  it("that can start themselves through queues are only these four, and each of them states the reason", () => {
    const sends = (id: string): (string | undefined)[] =>
      template
        .statementsOf(String(template.resources[id]?.Metadata.file))
        .filter((statement) => listed(at(statement, "Action")).includes("sqs:SendMessage"))
        .flatMap((statement) => listed(at(statement, "Resource")).map(target));
    const consumers = template.all("AWS::Lambda::EventSourceMapping").map(({ properties }) => properties);
    /** Returns the ids of the functions that read the queues to which the function `id` sends messages. */
    const wakes = (id: string): string[] =>
      sends(id).flatMap((queue) =>
        consumers
          .filter(({ EventSourceArn }) => target(EventSourceArn) === queue)
          .map(({ FunctionName }) => template.invokedBy(FunctionName) ?? ""),
      );
    const comesBack = (from: string): boolean => {
      const reached = new Set(wakes(from));
      for (const id of reached) for (const next of wakes(id)) reached.add(next);
      return reached.has(from);
    };
    const functions = template.all("AWS::Lambda::Function");
    const inLoops = functions.filter(({ id }) => comesBack(id));
    const files = inLoops.map(({ resource }) => resource.Metadata.file);
    expect(files.toSorted()).toEqual(["events/deliver", "jobs/bulk", "jobs/export", "jobs/import"]);
    for (const { id, properties, resource } of functions) {
      expect(properties.RecursiveLoop, id).toBe(comesBack(id) ? "Allow" : undefined);
      if (comesBack(id)) expect(resource.Metadata.recursion, id).toMatch(/^[A-Z].{30,}\.$/);
    }
  });

  it("reserve no concurrency in a new account; in production they reserve some for background work", async () => {
    const reservedIn = (one: Template) =>
      Object.fromEntries(
        one
          .all("AWS::Lambda::Function")
          .filter(({ properties }) => properties.ReservedConcurrentExecutions !== undefined)
          .map(({ properties, resource }) => [resource.Metadata.file, properties.ReservedConcurrentExecutions]),
      );
    const sendersIn = (one: Template) => {
      const of = one.functionOf(eventFunctions.deliver.file).id;
      const mapping = one
        .all("AWS::Lambda::EventSourceMapping")
        .find(({ properties }) => one.invokedBy(properties.FunctionName) === of);
      return at(mapping?.properties, "ScalingConfig", "MaximumConcurrency");
    };
    expect(reservedIn(template)).toMatchObject({
      authorize: 50,
      "events/publish": 20,
      "index/flush": 20,
      "events/deliver": 50,
      "prospects/export": 50,
      "prospects/import": 50,
    });
    expect(sendersIn(template)).toBe(50);
    const least = await synthesized(small);
    expect(reservedIn(least)).toEqual({});
    expect(sendersIn(least)).toBe(2);
    const inQueues = least
      .all("AWS::Lambda::EventSourceMapping")
      .map(({ properties }) => Number(at(properties, "ScalingConfig", "MaximumConcurrency") ?? 0));
    expect(inQueues.reduce((sum, one) => sum + one, 0)).toBe(NEW_ACCOUNT_EXECUTIONS - 2);
    for (const { properties } of least.all("AWS::Lambda::Function")) {
      expect(properties.MemorySize, String(properties.Description)).toBeLessThanOrEqual(NEW_ACCOUNT_MB);
    }
  });

  it("log to groups with a retention: the routes to one group, each event function to its own", () => {
    const ofRoutes = new Set(routes.map(({ file }) => logGroupOf(file)));
    const ofEvents = new Set(Object.values(eventFunctions).map(({ file }) => logGroupOf(file)));
    expect(ofRoutes.size).toBe(1);
    expect(ofEvents.size).toBe(Object.keys(eventFunctions).length);
    const groups = template.all("AWS::Logs::LogGroup");
    expect(groups.map(({ id }) => id)).toEqual(expect.arrayContaining([...ofRoutes, ...ofEvents]));
    for (const { id, properties } of groups) expect(properties.RetentionInDays, id).toBeGreaterThan(0);
  });
});

it("the outputs are exactly the names that clients and operators need", () => {
  const queues = ["BulkJobs", "Deliveries", "Exports", "Imports"].flatMap((name) => [name, `${name}DeadLetters`]);
  const urls = [...queues, "ParkedRecords", "UnflushedIndexes"].map((name) => `${name}Url`);
  const others = ["AlarmTopic", "ApiUrl", "Audience", "BucketName", "Issuer", "OwnTableName", "Retention"];
  const ids = ["SecretsKeyArn", "TableName", "TimeScale", "UserPoolClientId", "UserPoolId"];
  expect(Object.keys(template.outputs).toSorted()).toEqual([...others, ...ids, ...urls].toSorted());
});
