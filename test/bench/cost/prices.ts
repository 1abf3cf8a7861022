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
  lambda: { request: 0.2 / MILLION, gbSecond: 0.0000133334 },
  dynamoDb: {
    readUnit: 0.125 / MILLION,
    writeUnit: 0.625 / MILLION,
    gbMonth: 0.25,
    pointInTimeGbMonth: 0.2,
    /** A GB in a recovery point of AWS Backup for a month. Each recovery point of a table is a full copy. */
    backupGbMonth: 0.1,
    backupColdGbMonth: 0.03,
  },
  cloudWatch: {
    /** A GB of written log lines. */
    logGb: 0.5,
    alarmMonth: 0.1,
    metricMonth: 0.3,
    dashboardMonth: 3,
  },
  dataTransfer: { outGb: 0.09 },
  sqs: { request: 0.4 / MILLION },
  kms: { keyMonth: 1 },
  waf: { aclMonth: 5, ruleMonth: 1, request: 0.6 / MILLION },
} as const;
