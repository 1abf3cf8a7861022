/** The budget of AWS Budgets, which mails the operator before the costs of the account get too high. */
import { CfnBudget } from "aws-cdk-lib/aws-budgets";
import type { Construct } from "constructs";

const NEAR = 80;

/** Creates the budget. AWS Budgets sends its mails itself, so the address needs no confirmation. */
export function createBudget(scope: Construct, dollars: number, email: string): void {
  const mail = (notificationType: "ACTUAL" | "FORECASTED", threshold: number) => ({
    notification: { notificationType, comparisonOperator: "GREATER_THAN", threshold, thresholdType: "PERCENTAGE" },
    subscribers: [{ subscriptionType: "EMAIL", address: email }],
  });
  new CfnBudget(scope, "Budget", {
    budget: { budgetType: "COST", timeUnit: "MONTHLY", budgetLimit: { amount: dollars, unit: "USD" } },
    notificationsWithSubscribers: [mail("ACTUAL", NEAR), mail("FORECASTED", 100)],
  });
}
