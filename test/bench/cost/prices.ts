/** Contains the prices of AWS in US dollars for the region us-east-1, without free tiers and taxes. */
export const PRICES_DATE = "2026-11-22";
export const PRICES_REGION = "us-east-1";

const MILLION = 1_000_000;

export const prices = {
  apiGateway: {
    /** One request to a REST API. API Gateway counts a streamed response of more than 10 MB as several requests. */
    request: 3.5 / MILLION,
  },
  /** Prices for functions on arm64. */
  lambda: {
    request: 0.2 / MILLION,
    gbSecond: 0.0000133334,
    /** A GB-second for which Lambda keeps a provisioned environment ready. It is paid even if no request arrives. */
    provisionedGbSecond: 0.0000033334,
    /** A GB-second for which a request runs in a provisioned environment. It is paid in addition to `provisionedGbSecond`. */
    gbSecondOnProvisioned: 0.0000097222 * 0.8,
  },
  dynamoDb: {
    readUnit: 0.125 / MILLION,
    writeUnit: 0.625 / MILLION,
    gbMonth: 0.25,
    pointInTimeGbMonth: 0.2,
    /** A GB in a recovery point of AWS Backup for a month. Each recovery point of a table is a full copy. */
    backupGbMonth: 0.1,
    backupColdGbMonth: 0.03,
  },
  s3: { get: 0.4 / MILLION, put: 5 / MILLION, gbMonth: 0.023 },
  cloudWatch: {
    /** A GB of written log lines. */
    logGb: 0.5,
    logGbMonth: 0.03,
    alarmMonth: 0.1,
    metricMonth: 0.3,
    dashboardMonth: 3,
  },
  dataTransfer: { outGb: 0.09 },
  sqs: { request: 0.4 / MILLION },
  kms: { keyMonth: 1, request: 0.03 / 10_000 },
  waf: { aclMonth: 5, ruleMonth: 1, request: 0.6 / MILLION },
  /** A user who signs in or refreshes a token in the month, with the plan Essentials. The first 10 000 users are free. */
  cognito: { activeUserMonth: 0.015, freeUsers: 10_000 },
  rds: {
    /** An hour of db.t4g.medium with PostgreSQL, Multi-AZ with one standby. */
    mediumMultiAzHour: 0.129,
    /** An hour of db.m7g.large with PostgreSQL, Multi-AZ with one standby. */
    largeMultiAzHour: 0.336,
    /** A GB of gp3 storage for a month, Multi-AZ. */
    gbMonth: 0.23,
  },
  /** Prices for tasks on arm64. */
  fargate: { vcpuHour: 0.03238, gbHour: 0.00356 },
  loadBalancer: { hour: 0.0225, capacityUnitHour: 0.008 },
  openSearch: { computeUnitHour: 0.24, gbMonth: 0.024 },
} as const;
